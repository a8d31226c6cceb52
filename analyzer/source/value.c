/* SPDX-License-Identifier: MIT */
#include "analyzer/source/flow_inner.h"

#include <limits.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"

#define DEPTH	  60
#define FILES_MAX 24

/* Functions that put it into their first argument. */
static const char stores_first[] = " heappush insort insort_left insort_right setattr ";
/* Methods that keep what they are given until something undoes them. */
static const char registers[] = " callback finalize register add_param_group register_buffer register_forward_hook "
				"register_forward_pre_hook register_full_backward_hook register_hook ";
static const char logs[] = " debug info warning error exception critical ";
/* What these give refers to no memory of a device. */
static const char scalar_methods[] =
	" item tolist cpu numpy size dim numel nelement data_ptr backward zero_grad step format join index count"
	" element_size stride is_contiguous keys nbytes send ";
static const char scalar_functions[] =
	" int float bool str len repr print isinstance type id hash format range hasattr round ord chr ";
static const char scalar_attributes[] =
	" shape dtype device ndim is_cuda requires_grad nbytes itemsize layout names n size count length name index"
	" width height depth ";
/* What these give is the object itself or refers to it. */
static const char views[] =
	" detach data view reshape squeeze unsqueeze transpose permute contiguous narrow expand expand_as flatten unbind split "
	"chunk"
	" requires_grad_ get values items copy pop popleft T mT swapaxes select view_as unflatten result __getitem__ ";
static const char holders[] = " list tuple dict set frozenset deque partial iter zip enumerate reversed sorted OrderedDict "
			      "defaultdict next filter map chain"
			      " copy vars getattr create_task ensure_future SimpleNamespace namedtuple replace _replace ";

/* ---- functions that are called */

struct sl_flow_file *sl_flow_open(struct sl_flow_case *of, const char *path)
{
	const struct sl_source_file *text;
	struct sl_flow_file *file;
	enum sl_source_why why;

	for (size_t i = 0; i < of->files.count; i++)
		if (!strcmp(of->files.item[i]->path, path))
			return of->files.item[i];
	if (!sl_paths_ends(path, ".py") || of->files.count == FILES_MAX)
		return NULL;
	text = sl_source_open(of->source, of->trace, path, &why);
	if (!text)
		return NULL;
	file = sl_memory_must(calloc(1, sizeof(*file)));
	file->path = sl_source_keep(of->source, path);
	sl_script_read(&file->python, text);
	*SL_PUSH(&of->files) = file;
	return file;
}

void sl_flow_end(struct sl_flow_case *of)
{
	for (size_t i = 0; i < of->files.count; i++) {
		sl_script_free(&of->files.item[i]->python);
		free(of->files.item[i]);
	}
	SL_DROP(&of->files);
	SL_DROP(&of->found);
}

/* The modules of the program that the file imports, beside it. */
static void open_imports(struct sl_flow *f)
{
	const struct sl_script *python = &f->file->python;
	const char *slash = strrchr(f->file->path, '/');
	char path[PATH_MAX];

	if (f->file->imported)
		return;
	f->file->imported = true;
	for (uint32_t i = 0; i < python->statement.count; i++) {
		const struct sl_script_statement *s = &python->statement.item[i];
		size_t size = slash ? (size_t)(slash + 1 - f->file->path) : 0;

		if (!sl_script_is_any(python, s->first, " import from ") || size >= sizeof(path))
			continue;
		memcpy(path, f->file->path, size);
		for (uint32_t at = s->first + 1; at < s->end && !sl_flow_is(f, at, s->end, " import as , ") && size < sizeof(path);
		     at++)
			if (!sl_flow_is(f, at, s->end, " . ..."))
				size += (size_t)snprintf(path + size, sizeof(path) - size, "%.*s%s",
							 (int)sl_flow_token(f, at)->size, sl_flow_token(f, at)->at,
							 sl_flow_is(f, at + 1, s->end, " . ") ? "/" : ".py");
		if (size < sizeof(path) && size > 3)
			sl_flow_open(f->of, path);
	}
}

/* The class that the object of tokens [root, last] is made of, in the file: "meter", "self.meter"; NULL: not known. */
static const struct sl_script_token *class_of(const struct sl_flow *f, uint32_t root, uint32_t last)
{
	const struct sl_script *python = &f->file->python;
	uint32_t made = SL_SCRIPT_NONE, from, end;

	if (last == root + 2 && sl_flow_is(f, root + 1, last, " . ")) {
		f->of->steps += python->statement.count;
		for (uint32_t i = 0; i < python->statement.count; i++) {
			uint32_t first = python->statement.item[i].first;

			if (first + 5 < python->statement.item[i].end && sl_script_is(python, first, "self") &&
			    sl_script_same(&python->token.item[first + 2], sl_flow_token(f, last)) &&
			    sl_script_is(python, first + 3, "="))
				return &python->token.item[first + 4];
		}
	}
	if (last != root)
		return NULL;
	if (sl_flow_is_text(sl_flow_token(f, root), "self")) {
		made = sl_script_around(python, f->statement, " class ", SL_SCRIPT_NONE);
		return made == SL_SCRIPT_NONE ? NULL : sl_flow_token(f, sl_script_word(python, made) + 1);
	}
	made = sl_flow_assigned(f, sl_flow_token(f, root), f->function);
	if (made == SL_SCRIPT_NONE)
		made = sl_flow_assigned(f, sl_flow_token(f, root), SL_SCRIPT_NONE);
	return made != SL_SCRIPT_NONE && sl_flow_origin(f, made, sl_flow_token(f, root), &from, &end) && from + 1 < end
		       ? sl_flow_token(f, from)
		       : NULL;
}

/* A list, a dictionary or another object of Python's own. */
static bool is_builtin(const struct sl_script_token *class)
{
	struct sl_script one = {.token = {.item = (struct sl_script_token *)class, .count = 1}};

	return class &&
	       sl_script_is_any(&one, 0, " list dict set tuple deque OrderedDict defaultdict Queue SimpleQueue Counter [ { ");
}

/* The class around a function, whose statement is `i`; NULL: none. */
static const struct sl_script_token *class_around(const struct sl_script *python, uint32_t i)
{
	uint32_t around = python->statement.item[i].parent, word = around == SL_SCRIPT_NONE ? 0 : sl_script_word(python, around);

	return around != SL_SCRIPT_NONE && sl_script_is(python, word, "class") ? &python->token.item[word + 1] : NULL;
}

/* A function of the program. */
struct function {
	struct sl_flow_file *file;
	uint32_t header;
};

#define FUNCTIONS 4

/*
 * The program's functions of that name, or the constructor of a class of that name.  The one of `class` comes alone.
 * Without it come all, if they are FUNCTIONS at most.  exact: no other one comes.
 */
static unsigned find_functions(struct sl_flow *f, const struct sl_script_token *name, const struct sl_script_token *class,
			       bool exact, struct function found[FUNCTIONS])
{
	unsigned count = 0;

	open_imports(f);
	for (size_t k = 0; k < f->of->files.count; k++) {
		struct sl_flow_file *file = f->of->files.item[k];
		const struct sl_script *python = &file->python;

		if (sl_flow_is_spent(f, (uint32_t)python->statement.count))
			return 0;
		for (uint32_t i = 0; i < python->statement.count; i++) {
			uint32_t word = sl_script_word(python, i);
			const struct sl_script_token *around;

			if (!sl_script_is(python, word, "def") || word + 1 >= python->statement.item[i].end)
				continue;
			around = class_around(python, i);
			if (sl_script_is(python, word + 1, "__init__") ? !around || !sl_script_same(around, name)
								       : !sl_script_same(&python->token.item[word + 1], name))
				continue;
			if (class && around && sl_script_same(around, class)) {
				found[0] = (struct function){file, i};
				return 1;
			}
			if (count < FUNCTIONS)
				found[count] = (struct function){file, i};
			count++;
		}
	}
	return exact || count > FUNCTIONS ? 0 : count;
}

/* The tokens name the object before the one that the statement makes: "node = Node(node)", or `self` in a method of the class. */
static bool is_the_one_before(const struct sl_flow *f, uint32_t from, uint32_t end, struct function function)
{
	const struct sl_script *python = &f->file->python;
	const struct sl_script_statement *s = &python->statement.item[f->statement];
	const struct sl_script_token *class = class_of(f, from, end - 1), *name = NULL;

	if (sl_flow_is_text(sl_flow_token(f, from), "self") && end == from + 1)
		return class && sl_script_same(class, class_around(&function.file->python, function.header));
	for (uint32_t i = f->statement; i < python->statement.count && i < f->statement + 8; i++) {
		uint32_t at = python->statement.item[i].first, to = from;

		while (to < end && sl_script_same(sl_flow_token(f, at), sl_flow_token(f, to))) {
			at++;
			to++;
		}
		if (to == end && sl_script_is(python, at, "=") &&
		    (i == f->statement || (name && sl_script_same(name, sl_flow_token(f, at + 1)))))
			return true;
		name = sl_script_is(python, s->first + 1, "=") ? sl_flow_token(f, s->first) : NULL;
	}
	return false;
}

/* Enters a function with what the arguments of the call hold. */
static void enter_one(struct sl_flow *f, struct function function, uint32_t open, uint32_t root, bool method,
		      enum sl_flow_hold base, enum sl_flow_hold *hold)
{
	struct sl_flow inner = {
		.of = f->of, .file = function.file, .function = function.header, .calls = f->calls - 1, .depth = f->depth};
	const struct sl_script *python = &function.file->python;
	uint32_t close = sl_flow_token(f, open)->match, parameter, at = open + 1, part;

	parameter = sl_script_word(python, function.header) + 3; /* def NAME ( */
	inner.constructs = sl_script_is(python, parameter - 2, "__init__");
	if (sl_script_is_any(python, parameter, " self cls ")) {
		if (base)
			sl_flow_hold(&inner, &python->token.item[parameter], NULL, base);
		parameter = sl_script_find(python, parameter, python->statement.item[function.header].end, " , ") + 1;
	}
	for (; at < close; at = part + 1) {
		uint32_t end = python->statement.item[function.header].end, to = parameter, equals;
		enum sl_flow_hold given;

		part = sl_script_find(&f->file->python, at, close, " , ");
		equals = sl_script_find(&f->file->python, at, part, " = ");
		given = sl_flow_value(f, equals < part ? equals + 1 : at, part);
		for (; equals < part && to < end; to = sl_script_find(python, to, end, " , ") + 1)
			if (sl_script_same(&python->token.item[to], sl_flow_token(f, at)) || sl_script_is(python, to, "**"))
				break;
		while (to < end && sl_script_is_any(python, to, " * ** "))
			to++;
		if (to < end && python->token.item[to].kind == SL_SCRIPT_NAME && inner.constructs &&
		    is_the_one_before(f, equals < part ? equals + 1 : at, part, function)) {
			inner.link = &python->token.item[to];
			f->linked = true;
			given = SL_HOLDS_IT;
		}
		if (to < end && python->token.item[to].kind == SL_SCRIPT_NAME && given)
			sl_flow_hold(&inner, &python->token.item[to], NULL, given);
		if (equals >= part && parameter < end && !sl_script_is(python, parameter, "*"))
			parameter = sl_script_find(python, parameter, end, " , ") + 1;
	}
	if (!inner.name_count)
		return;
	inner.statement = function.header + 1;
	sl_flow_run(&inner, function.header + 1);
	*hold = sl_flow_larger(*hold, inner.returned);
	if (inner.self_holds) {
		*hold = inner.constructs ? SL_HOLDS_IT : *hold;
		if (method && !sl_flow_is_text(sl_flow_token(f, root), "self"))
			sl_flow_hold(f, sl_flow_token(f, root), NULL, SL_HOLDS_IT);
	}
}

static struct sl_script_token word_of(const char *text)
{
	return (struct sl_script_token){.kind = SL_SCRIPT_NAME, .at = text, .size = (uint32_t)strlen(text)};
}

/* Enters a call with what its arguments hold.  exact: only what a known class has.  False: the program has no such function. */
static bool enter(struct sl_flow *f, uint32_t name, uint32_t root, uint32_t open, bool exact, enum sl_flow_hold base,
		  enum sl_flow_hold *hold)
{
	const struct sl_script_token calls[] = {word_of("__call__"), word_of("forward")}, *class;
	bool method = root != name;
	struct function found[FUNCTIONS];
	unsigned count;

	if (!f->calls)
		return false;
	class = method ? class_of(f, root, name - 2) : NULL;
	count = !exact || class ? find_functions(f, sl_flow_token(f, name), class, exact, found) : 0;
	class = class_of(f, root, name);
	for (size_t i = 0; !count && class && i < SL_COUNT(calls); i++) {
		count = find_functions(f, &calls[i], class, true, found);
		if (count && !f->callee && !f->first &&
		    sl_flow_has_line(f, root, open)) /* no word of the line names the frame within */
			*hold = f->callee_hold;
	}
	for (unsigned i = 0; i < count; i++)
		if (found[i].file != f->file || found[i].header != f->function) /* itself gives what its other returns give */
			enter_one(f, found[i], open, root, method, base, hold);
	return count > 0;
}

bool sl_flow_enter_all(struct sl_flow *f, const struct sl_script_token *name, const struct sl_script_token *class)
{
	struct function found[FUNCTIONS];
	unsigned count = f->calls ? find_functions(f, name, class, class != NULL, found) : 0;

	for (unsigned i = 0; i < count; i++) {
		struct sl_flow inner = {.of = f->of, .file = found[i].file, .function = found[i].header, .calls = f->calls - 1};
		const struct sl_script_statement *s = &inner.file->python.statement.item[inner.function];

		for (uint32_t at = s->first + 2; at < s->end; at++)
			if (sl_flow_token(&inner, at)->kind == SL_SCRIPT_NAME && !sl_flow_is(&inner, at, at + 1, " self cls "))
				sl_flow_hold(&inner, sl_flow_token(&inner, at), NULL, SL_HOLDS_IT);
		inner.statement = inner.function + 1;
		sl_flow_run(&inner, inner.statement);
	}
	return count > 0;
}

bool sl_flow_enter_method(struct sl_flow *f, uint32_t root, uint32_t last, const char *method)
{
	const struct sl_script_token name = word_of(method), *class = class_of(f, root, last);

	return class && sl_flow_enter_all(f, &name, class);
}

/* ---- expressions */

bool sl_flow_is_without_grad(const struct sl_script *python, uint32_t statement)
{
	uint32_t header = statement;

	for (; header != SL_SCRIPT_NONE; header = python->statement.item[header].parent) {
		const struct sl_script_statement *s = &python->statement.item[header];
		uint32_t word = sl_script_word(python, header);

		if (sl_script_is(python, word, "with") && sl_script_has(python, s->first, s->end, " no_grad inference_mode "))
			return true;
		for (uint32_t above = header; sl_script_is(python, word, "def") && above-- > 0;) {
			const struct sl_script_statement *d = &python->statement.item[above];

			if (!sl_script_is(python, d->first, "@"))
				break;
			if (sl_script_has(python, d->first, d->end, " no_grad inference_mode "))
				return true;
		}
	}
	return false;
}

/* What is computed from a value holds it through the graph, where there is one. */
static enum sl_flow_hold computed(const struct sl_flow *f, enum sl_flow_hold hold)
{
	return hold && !f->of->without_grad && !sl_flow_is_without_grad(&f->file->python, f->statement) ? SL_HOLDS_GRAPH
													: SL_HOLDS_NOT;
}

bool sl_flow_has_line(const struct sl_flow *f, uint32_t from, uint32_t end)
{
	return f->line && from < end && sl_flow_token(f, from)->line <= f->line && sl_flow_token(f, end - 1)->line >= f->line;
}

static enum sl_flow_hold arguments(struct sl_flow *f, uint32_t open, uint32_t close)
{
	enum sl_flow_hold hold = SL_HOLDS_NOT;
	uint32_t part, equals;

	for (uint32_t at = open + 1; at < close; at = part + 1) {
		part = sl_script_find(&f->file->python, at, close, " , ");
		equals = sl_script_find(&f->file->python, at, part, " = ");
		hold = sl_flow_larger(hold, sl_flow_value(f, equals < part ? equals + 1 : at, part));
	}
	return hold;
}

static bool is_to_host(const struct sl_flow *f, uint32_t open, uint32_t close)
{
	for (uint32_t i = open + 1; i < close; i++)
		if (sl_flow_token(f, i)->kind == SL_SCRIPT_STRING && sl_flow_token(f, i)->size == 5 &&
		    !memcmp(sl_flow_token(f, i)->at + 1, "cpu", 3))
			return true;
	return false;
}

/* What ctypes is given by reference has what the call made. */
static void hold_references(struct sl_flow *f, uint32_t open, uint32_t close)
{
	for (uint32_t at = open + 1; at + 2 < close; at++) {
		bool attribute = sl_flow_is(f, at + 3, close, " . ");

		if (!sl_flow_is(f, at, close, " byref pointer addressof ") || !sl_flow_is(f, at + 1, close, " ( "))
			continue;
		f->self_holds |= attribute && sl_flow_is_text(sl_flow_token(f, at + 2), "self");
		sl_flow_hold(f, sl_flow_token(f, at + 2), attribute ? sl_flow_token(f, at + 4) : NULL, SL_HOLDS_IT);
	}
}

/* "import torch.nn.functional as F": the name is of a module, whose functions put nothing into it. */
static bool is_module(struct sl_flow *f, uint32_t root)
{
	const struct sl_script *python = &f->file->python;

	if (sl_flow_is_spent(f, (uint32_t)python->statement.count))
		return true;
	for (uint32_t i = 0; i < python->statement.count; i++)
		for (uint32_t at = python->statement.item[i].first;
		     sl_script_is(python, python->statement.item[i].first, "import") && at < python->statement.item[i].end; at++)
			if (sl_script_same(&python->token.item[at], sl_flow_token(f, root)))
				return true;
	return false;
}

/* "self.update(x)", where the object gave that name to a layer: no container is called. */
static bool is_own(const struct sl_flow *f, uint32_t root, uint32_t name)
{
	return sl_flow_is_text(sl_flow_token(f, root), "self") && class_of(f, root, name);
}

/* What is registered stays: under no name that the next one takes, and with no handle by which it is taken out. */
static bool is_for_good(const struct sl_flow *f, uint32_t open)
{
	const struct sl_script_statement *s = &f->file->python.statement.item[f->statement];
	const struct sl_script_token *first = sl_flow_token(f, open + 1);

	return sl_script_find(&f->file->python, s->first, s->end, " = ") == s->end &&
	       !(first->kind == SL_SCRIPT_STRING && !strchr("fF", *first->at));
}

/* root: the first token of the chain; name: of the function; base: what the object holds. */
static enum sl_flow_hold call(struct sl_flow *f, uint32_t root, uint32_t name, uint32_t open, enum sl_flow_hold base)
{
	const struct sl_script_token emit = word_of("emit");
	uint32_t close = sl_flow_token(f, open)->match;
	bool method = root != name, made;
	size_t found = f->of->found.count;
	enum sl_flow_hold given, hold = SL_HOLDS_NOT;

	given = arguments(f, open, close);
	if (sl_flow_token(f, name)->kind != SL_SCRIPT_NAME) /* of what a call gave */
		return sl_flow_larger(base, given);
	made = sl_flow_has_line(f, root, close + 1);
	if (made && f->callee && sl_flow_is_text(sl_flow_token(f, name), f->callee))
		return f->callee_hold;
	if (made && f->first)
		hold_references(f, open, close);
	if (method && (given || base) && enter(f, name, root, open, true, given ? SL_HOLDS_NOT : base, &hold)) {
		f->of->found.count = given ? f->of->found.count : found; /* what it stores is the object's own already */
		return hold;
	}
	if (given && method && sl_flow_is(f, name, close, logs)) { /* a handler has the record */
		sl_flow_enter_all(f, &emit, NULL);
		return SL_HOLDS_NOT;
	}
	if (given && sl_flow_is(f, name, close, " sorted ") && sl_script_find(&f->file->python, open + 1, close, " , ") == close)
		given = SL_HOLDS_GRAPH; /* what can be compared: numbers, the keys of a dictionary */
	if (sl_flow_is(f, name, close, method ? scalar_methods : scalar_functions) ||
	    (method && sl_flow_is(f, name, close, " to ") && is_to_host(f, open, close)))
		return SL_HOLDS_NOT;
	if (given && sl_flow_is(f, name, close, stores_first)) {
		sl_flow_put(f, open + 1, name, given);
		return SL_HOLDS_NOT;
	}
	if (given && !(method && sl_flow_is(f, name, close, SL_FLOW_STORES) && is_builtin(class_of(f, root, name - 2))) &&
	    enter(f, name, root, open, false, SL_HOLDS_NOT, &hold))
		return hold;
	if (method && sl_flow_is(f, name, close, SL_FLOW_STORES) &&
	    !(name == root + 2 && (is_module(f, root) || is_own(f, root, name)))) {
		if (given)
			sl_flow_put(f, root, name, given);
		return sl_flow_is(f, name, close, " setdefault ") ? sl_flow_larger(given, base) : SL_HOLDS_NOT;
	}
	if (given && !base && sl_flow_is(f, name, close, registers) && is_for_good(f, open)) {
		sl_flow_put(f, root, name, given);
		return SL_HOLDS_NOT;
	}
	if (made && !f->callee)
		return f->first ? SL_HOLDS_IT : f->callee_hold;
	if (method && sl_flow_is(f, name, close, views))
		return sl_flow_is(f, name, close, " detach ") && base == SL_HOLDS_GRAPH ? SL_HOLDS_NOT
											: sl_flow_larger(base, given);
	if (sl_flow_is(f, name, close, holders) || (*sl_flow_token(f, name)->at >= 'A' && *sl_flow_token(f, name)->at <= 'Z'))
		return given;
	return computed(f, sl_flow_larger(base, given));
}

/* An atom with what follows it: .name, (...), [...]. */
static enum sl_flow_hold primary(struct sl_flow *f, uint32_t from, uint32_t end)
{
	enum sl_flow_hold hold = SL_HOLDS_NOT;
	struct function method[FUNCTIONS];
	uint32_t at = from, close;

	if (sl_flow_is(f, at, end, " ( [ { ")) {
		close = sl_flow_token(f, at)->match;
		close = close < end ? close : end - 1;
		hold = sl_flow_value(f, at + 1, close);
		at = close + 1;
	} else {
		if (sl_flow_token(f, at)->kind == SL_SCRIPT_NAME)
			hold = sl_flow_hold_of(f, sl_flow_token(f, at),
					       at + 2 < end && sl_flow_is(f, at + 1, end, " . ") ? sl_flow_token(f, at + 2) : NULL);
		if (!hold && at + 3 == end && sl_flow_is(f, at + 1, end, " . ") && class_of(f, at, at) &&
		    find_functions(f, sl_flow_token(f, at + 2), class_of(f, at, at), true, method))
			hold = sl_flow_hold_of(f, sl_flow_token(f, at), NULL); /* the method has its object */
		at++;
	}
	if (f->callee && !sl_flow_is(f, end - 2, end, " . ") == (end == from + 1) &&
	    sl_flow_is_text(sl_flow_token(f, end - 1), f->callee) && sl_flow_has_line(f, from, end))
		return f->callee_hold; /* "map(self.predict, data)" calls it */
	for (; at < end; at++) {
		if (sl_flow_is(f, at, end, " . ")) {
			if (at + 1 < end && sl_flow_is(f, at + 1, end, scalar_attributes))
				hold = SL_HOLDS_NOT;
			else if (at > from + 1 && !sl_flow_is(f, at + 1, end, views) && !sl_flow_is(f, at + 2, end, " ( "))
				hold = sl_flow_part(hold);
			at++;
		} else if (sl_flow_is(f, at, end, " [ ")) {
			close = sl_flow_token(f, at)->match;
			if (close > end)
				break;
			sl_flow_value(f, at + 1, close);
			hold = sl_flow_part(hold);
			at = close;
		} else if (sl_flow_is(f, at, end, " ( ")) {
			close = sl_flow_token(f, at)->match;
			if (close >= end)
				break;
			hold = call(f, from, at - 1, at, hold);
			at = close;
		}
	}
	return hold;
}

/* [element for target in iterable if condition]; `loop` is its "for". */
static enum sl_flow_hold comprehension(struct sl_flow *f, uint32_t from, uint32_t loop, uint32_t end)
{
	const struct sl_script *python = &f->file->python;
	uint32_t colon;

	for (uint32_t at = loop, in, next; at < end; at = next) {
		in = sl_script_find(python, at + 1, end, " in ");
		next = sl_script_find(python, in, end, " for if ");
		if (sl_flow_is(f, at, end, " for "))
			sl_flow_hold_targets(f, at + 1, in, in < end ? in + 1 : end, next);
	}
	colon = sl_script_find(python, from, loop, " : ");
	return sl_flow_value(f, colon < loop ? colon + 1 : from, loop);
}

static enum sl_flow_hold operands(struct sl_flow *f, uint32_t from, uint32_t end)
{
	static const char operators[] = " + - * / // % @ ** & | ^ << >> ";
	const struct sl_script *python = &f->file->python;
	enum sl_flow_hold hold = SL_HOLDS_NOT, one;
	uint32_t at = from, part;
	bool alone = true, list = false;

	while (at < end && sl_flow_is(f, at, end, " + - ~ * ** "))
		at++;
	if (at > from && !sl_flow_is(f, from, end, " * ** "))
		alone = false;
	for (; at < end; at = part + 1) {
		part = sl_script_find(python, at, end, operators);
		while (part < end && part > at && sl_flow_is(f, part - 1, end, operators)) /* a sign */
			part = sl_script_find(python, part + 1, end, operators);
		alone &= part == end && hold == SL_HOLDS_NOT;
		list |= sl_flow_is(f, at, end, " [ ");
		one = part > at ? primary(f, at, part) : SL_HOLDS_NOT;
		if (part < end || !alone)
			one = one && sl_flow_is(f, at, end, " [ ( ") && sl_flow_token(f, at)->match + 1 == part ? one
														: computed(f, one);
		hold = sl_flow_larger(hold, one);
	}
	/* the line's operator made the block */
	return !alone && !list && f->first && sl_flow_has_line(f, from, end) ? SL_HOLDS_IT : hold;
}

void sl_flow_return(struct sl_flow *f, uint32_t from, uint32_t end, enum sl_flow_hold hold)
{
	uint32_t part = sl_script_find(&f->file->python, from, end, " , ");

	f->returned = sl_flow_larger(f->returned, hold);
	for (uint32_t bit = 1; bit && hold && part < end; from = part + 1, bit <<= 1) {
		part = sl_script_find(&f->file->python, from, end, " , ");
		f->parts |= sl_flow_value(f, from, part) ? bit : 0;
	}
}

static enum sl_flow_hold value_of(struct sl_flow *f, uint32_t from, uint32_t end)
{
	const struct sl_script *python = &f->file->python;
	enum sl_flow_hold hold;
	uint32_t at, colon;

	if (sl_flow_is(f, from, end, " await yield from "))
		hold = sl_flow_value(f, from + 1, end);
	else if (sl_flow_is(f, from, end, " lambda "))
		return sl_flow_mentioned(f, from, end) ? SL_HOLDS_IT : SL_HOLDS_NOT;
	else if ((at = sl_script_find(python, from, end, " for ")) < end)
		return comprehension(f, from, sl_flow_is(f, at - 1, end, " async ") ? at - 1 : at, end);
	else if ((at = sl_script_find(python, from, end, " , ")) < end)
		return sl_flow_larger(sl_flow_value(f, from, at), sl_flow_value(f, at + 1, end));
	else if ((at = sl_script_find(python, from, end, " := ")) < end) {
		hold = sl_flow_value(f, at + 1, end);
		sl_flow_hold_names(f, from, at, hold);
	} else if ((colon = sl_script_find(python, from, end, " : ")) < end) /* of a dictionary, or a slice */
		return sl_flow_value(f, colon + 1, end);
	else if ((at = sl_script_find(python, from, end, " if ")) < end) {
		colon = sl_script_find(python, at, end, " else ");
		sl_flow_value(f, at + 1, colon);
		return sl_flow_larger(sl_flow_value(f, from, at), sl_flow_value(f, colon < end ? colon + 1 : end, end));
	} else if ((at = sl_script_find(python, from, end, " or and ")) < end)
		return sl_flow_larger(sl_flow_value(f, from, at), sl_flow_value(f, at + 1, end));
	else if (sl_flow_is(f, from, end, " not ")) {
		sl_flow_value(f, from + 1, end);
		return SL_HOLDS_NOT;
	} else if ((at = sl_script_find(python, from, end, " == != < > <= >= in is ")) < end) {
		sl_flow_value(f, from, at);
		sl_flow_value(f, at + 1, end);
		return SL_HOLDS_NOT;
	} else
		return operands(f, from, end);
	if (sl_flow_is(f, from, end, " yield "))
		sl_flow_return(f, from + 1, end, hold);
	return hold;
}

enum sl_flow_hold sl_flow_value(struct sl_flow *f, uint32_t from, uint32_t end)
{
	enum sl_flow_hold hold;

	if (from >= end || f->depth >= DEPTH || sl_flow_is_spent(f, end - from))
		return SL_HOLDS_NOT;
	f->depth++;
	hold = value_of(f, from, end);
	f->depth--;
	return hold;
}
