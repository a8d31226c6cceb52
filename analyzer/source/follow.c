/* SPDX-License-Identifier: MIT */
/* Long: expressions, calls and stores ask each other. */
#include "analyzer/source/follow.h"

#include <limits.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"

#define NONE	  SL_PYTHON_NONE
#define STEPS	  3000000
#define DEPTH	  60
#define FILES_MAX 24

#define FUNCTIONS " def "
#define LOOPS	  " for while "

/* Functions that put it into their first argument. */
static const char stores_first[] = " heappush insort insort_left insort_right setattr ";
/* What these give refers to no memory of a device. */
static const char scalar_methods[] =
	" item tolist cpu numpy size dim numel nelement data_ptr backward zero_grad step format join index count"
	" element_size stride is_contiguous keys nbytes ";
static const char scalar_functions[] = " int float bool str len repr print isinstance id hash format range hasattr round ord chr ";
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
			      " copy vars getattr type SimpleNamespace namedtuple replace ";

static enum sl_follow_hold value(struct sl_follow *f, uint32_t from, uint32_t end);

static enum sl_follow_hold larger(enum sl_follow_hold a, enum sl_follow_hold b)
{
	return a > b ? a : b;
}

static const struct sl_python_token *token(const struct sl_follow *f, uint32_t at)
{
	return &f->file->python.token.item[at];
}

static bool is(const struct sl_follow *f, uint32_t at, uint32_t end, const char *words)
{
	return at < end && sl_python_is_any(&f->file->python, at, words);
}

static bool is_text(const struct sl_python_token *t, const char *text)
{
	return t->size == strlen(text) && !memcmp(t->at, text, t->size);
}

static bool is_spent(struct sl_follow *f, uint32_t tokens)
{
	f->of->steps += tokens + 1;
	return f->of->steps > STEPS;
}

/* ---- what holds it */

void sl_follow_hold(struct sl_follow *f, const struct sl_python_token *name, const struct sl_python_token *attribute,
		    enum sl_follow_hold hold)
{
	unsigned i = 0;

	while (i < f->held_count && !(sl_python_same(f->held[i].name, name) && !f->held[i].attribute == !attribute &&
				      (!attribute || sl_python_same(f->held[i].attribute, attribute))))
		i++;
	if (i == f->held_count && (!hold || i == SL_FOLLOW_NAMES))
		return;
	f->held_count += i == f->held_count;
	f->held[i].name = name;
	f->held[i].attribute = attribute;
	f->held[i].hold = hold;
}

/* attribute NULL: the object, with all its attributes. */
static enum sl_follow_hold hold_of(const struct sl_follow *f, const struct sl_python_token *name,
				   const struct sl_python_token *attribute)
{
	enum sl_follow_hold hold = SL_HOLDS_NOT;

	for (unsigned i = 0; i < f->held_count; i++)
		if (sl_python_same(f->held[i].name, name) &&
		    (!attribute || !f->held[i].attribute || sl_python_same(f->held[i].attribute, attribute)))
			hold = larger(hold, f->held[i].hold);
	return hold;
}

/* Hold the targets of a loop, a `with` or a comprehension. */
static void hold_names(struct sl_follow *f, uint32_t from, uint32_t end, enum sl_follow_hold hold)
{
	for (; from < end; from++)
		if (token(f, from)->kind == SL_PYTHON_NAME)
			sl_follow_hold(f, token(f, from), NULL, hold);
}

static enum sl_follow_hold mentioned(const struct sl_follow *f, uint32_t from, uint32_t end)
{
	enum sl_follow_hold hold = SL_HOLDS_NOT;

	for (; from < end; from++)
		if (token(f, from)->kind == SL_PYTHON_NAME)
			hold = larger(hold, hold_of(f, token(f, from), NULL));
	return hold;
}

/* ---- where it is stored */

/* True: the statement gives the name its object. */
static bool binds(const struct sl_python *python, const struct sl_python_statement *s, const struct sl_python_token *name)
{
	bool with = sl_python_is(python, s->first, "with");
	uint32_t end = with ? s->end : sl_python_find(python, s->first, s->end, " = ");

	for (uint32_t at = s->first; at < end && (with || end < s->end); at++)
		if (sl_python_same(&python->token.item[at], name) &&
		    (with ? at > s->first && sl_python_is(python, at - 1, "as")
			  : !(at > s->first && sl_python_is_any(python, at - 1, " . [ : ")) &&
				     sl_python_is_any(python, at + 1, " = , : ) ")))
			return true;
	return false;
}

/* The last statement of the function before the one that is looked at which gives the name its object; else the first. */
static uint32_t assigned(const struct sl_follow *f, const struct sl_python_token *name, uint32_t function)
{
	const struct sl_python *python = &f->file->python;
	uint32_t found = NONE;

	f->of->steps += python->statement.count;
	for (uint32_t i = 0; i < python->statement.count; i++)
		if (binds(python, &python->statement.item[i], name) && (found == NONE || i < f->statement) &&
		    sl_python_around(python, python->statement.item[i].parent, FUNCTIONS, NONE) == function)
			found = i;
	return found;
}

static bool is_parameter(const struct sl_follow *f, const struct sl_python_token *name, uint32_t function)
{
	const struct sl_python_statement *s;

	if (function == NONE)
		return false;
	s = &f->file->python.statement.item[function];
	for (uint32_t i = s->first + 2; i < s->end; i++)
		if (sl_python_same(token(f, i), name))
			return true;
	return false;
}

static uint32_t loop_of(const struct sl_follow *f, uint32_t statement)
{
	return sl_python_around(&f->file->python, statement, LOOPS, f->function);
}

static void find(struct sl_follow *f, uint32_t at, enum sl_follow_store store, enum sl_follow_hold hold)
{
	struct sl_follow_found found = {f->file, token(f, at)->line, f->function, store, hold};

	for (size_t i = 0; i < f->of->found.count; i++) {
		struct sl_follow_found *other = &f->of->found.item[i];

		if (other->file == found.file && other->line == found.line) {
			if (store > other->store || (store == other->store && hold > other->hold))
				*other = found;
			return;
		}
	}
	*SL_PUSH(&f->of->found) = found;
}

enum lives { WITH_PASS, WITH_FUNCTION, LONGER };

/* How long the object of a name lives, seen from the statement that is looked at. */
static enum lives lives(struct sl_follow *f, const struct sl_python_token *name)
{
	uint32_t made;

	if (is_text(name, "self"))
		return f->constructs ? WITH_PASS : LONGER;
	made = assigned(f, name, f->function);
	if (made != NONE && sl_python_is(&f->file->python, f->file->python.statement.item[made].first, "with"))
		return WITH_PASS;
	if (made == NONE || is_parameter(f, name, f->function))
		return LONGER;
	if (f->function == NONE)
		return loop_of(f, made) == NONE ? LONGER : loop_of(f, made) == loop_of(f, f->statement) ? WITH_PASS : WITH_FUNCTION;
	return loop_of(f, made) == loop_of(f, f->statement) ? WITH_PASS : WITH_FUNCTION;
}

/* The object that the tokens from `root` on name has it now; `at` is the line. */
static void store(struct sl_follow *f, uint32_t root, uint32_t at, enum sl_follow_hold hold)
{
	const struct sl_python_token *name = token(f, root);
	enum lives life;

	if (name->kind != SL_PYTHON_NAME)
		return;
	life = lives(f, name);
	if (life != WITH_PASS)
		find(f, at, life == LONGER ? SL_STORE_CONTAINER : SL_STORE_LOCAL, hold);
	if (life == LONGER)
		return;
	f->self_holds |= is_text(name, "self");
	sl_follow_hold(f, name, NULL, hold);
}

/* ---- functions that are called */

struct sl_follow_file *sl_follow_open(struct sl_follow_case *of, const char *path)
{
	const struct sl_source_file *text;
	struct sl_follow_file *file;
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
	sl_python_read(&file->python, text);
	*SL_PUSH(&of->files) = file;
	return file;
}

void sl_follow_end(struct sl_follow_case *of)
{
	for (size_t i = 0; i < of->files.count; i++) {
		sl_python_free(&of->files.item[i]->python);
		free(of->files.item[i]);
	}
	SL_DROP(&of->files);
	SL_DROP(&of->found);
}

/* The modules of the program that the file imports, beside it. */
static void open_imports(struct sl_follow *f)
{
	const struct sl_python *python = &f->file->python;
	const char *slash = strrchr(f->file->path, '/');
	char path[PATH_MAX];

	if (f->file->imported)
		return;
	f->file->imported = true;
	for (uint32_t i = 0; i < python->statement.count; i++) {
		const struct sl_python_statement *s = &python->statement.item[i];
		size_t size = slash ? (size_t)(slash + 1 - f->file->path) : 0;

		if (!sl_python_is_any(python, s->first, " import from ") || size >= sizeof(path))
			continue;
		memcpy(path, f->file->path, size);
		for (uint32_t at = s->first + 1; at < s->end && !is(f, at, s->end, " import as , ") && size < sizeof(path); at++)
			if (!is(f, at, s->end, " . ..."))
				size += (size_t)snprintf(path + size, sizeof(path) - size, "%.*s%s", (int)token(f, at)->size,
							 token(f, at)->at, is(f, at + 1, s->end, " . ") ? "/" : ".py");
		if (size < sizeof(path) && size > 3)
			sl_follow_open(f->of, path);
	}
}

/* The class that a name is made of, in the file; NULL: not known. */
static const struct sl_python_token *class_of(const struct sl_follow *f, uint32_t root)
{
	const struct sl_python *python = &f->file->python;
	uint32_t made = NONE, around;

	if (is_text(token(f, root), "self")) {
		around = sl_python_around(python, f->statement, " class ", NONE);
		return around == NONE ? NULL : token(f, sl_python_word(python, around) + 1);
	}
	made = assigned(f, token(f, root), f->function);
	if (made == NONE)
		made = assigned(f, token(f, root), NONE);
	if (made == NONE || python->statement.item[made].first + 3 >= python->statement.item[made].end ||
	    !sl_python_is(python, python->statement.item[made].first + 1, "="))
		return NULL;
	return token(f, python->statement.item[made].first + 2);
}

/* A list, a dictionary or another object of Python's own. */
static bool is_builtin(const struct sl_python_token *class)
{
	struct sl_python one = {.token = {.item = (struct sl_python_token *)class, .count = 1}};

	return class &&
	       sl_python_is_any(&one, 0, " list dict set tuple deque OrderedDict defaultdict Queue SimpleQueue Counter [ { ");
}

/* The header of the function, which may be a class's constructor; NONE: there is none, or there are several. */
static uint32_t find_function(struct sl_follow *f, const struct sl_python_token *name, const struct sl_python_token *class,
			      struct sl_follow_file **in)
{
	uint32_t found = NONE, count = 0;

	open_imports(f);
	for (size_t k = 0; k < f->of->files.count; k++) {
		struct sl_follow_file *file = f->of->files.item[k];
		const struct sl_python *python = &file->python;

		if (is_spent(f, (uint32_t)python->statement.count))
			return NONE;
		for (uint32_t i = 0; i < python->statement.count; i++) {
			uint32_t word = sl_python_word(python, i), around;

			if (!sl_python_is(python, word, "def") || word + 1 >= python->statement.item[i].end)
				continue;
			around = python->statement.item[i].parent;
			if (around != NONE && !sl_python_is(python, sl_python_word(python, around), "class"))
				around = NONE;
			if (sl_python_is(python, word + 1, "__init__")
				    ? around == NONE ||
					      !sl_python_same(&python->token.item[sl_python_word(python, around) + 1], name)
				    : !sl_python_same(&python->token.item[word + 1], name))
				continue;
			if (class && around != NONE &&
			    sl_python_same(&python->token.item[sl_python_word(python, around) + 1], class)) {
				*in = file;
				return i;
			}
			found = i;
			*in = file;
			count++;
		}
	}
	return count == 1 ? found : NONE;
}

/* Enters a call with what its arguments hold; false: the program has no such function, or several. */
static bool enter(struct sl_follow *f, uint32_t name, uint32_t root, bool method, uint32_t open, enum sl_follow_hold *hold)
{
	struct sl_follow inner = {.of = f->of, .calls = f->calls - 1, .depth = f->depth};
	const struct sl_python *python;
	uint32_t function, close = token(f, open)->match, parameter, at = open + 1, part;

	if (!f->calls)
		return false;
	function = find_function(f, token(f, name), method ? class_of(f, root) : NULL, &inner.file);
	if (function == NONE || (inner.file == f->file && function == f->function))
		return false;
	python = &inner.file->python;
	inner.function = function;
	parameter = sl_python_word(python, function) + 3; /* def NAME ( */
	if (sl_python_is_any(python, parameter, " self cls "))
		parameter = sl_python_find(python, parameter, python->statement.item[function].end, " , ") + 1;
	for (; at < close; at = part + 1) {
		uint32_t end = python->statement.item[function].end, to = parameter, equals;
		enum sl_follow_hold given;

		part = sl_python_find(&f->file->python, at, close, " , ");
		equals = sl_python_find(&f->file->python, at, part, " = ");
		given = value(f, equals < part ? equals + 1 : at, part);
		for (; equals < part && to < end; to = sl_python_find(python, to, end, " , ") + 1)
			if (sl_python_same(&python->token.item[to], token(f, at)) || sl_python_is(python, to, "**"))
				break;
		while (to < end && sl_python_is_any(python, to, " * ** "))
			to++;
		if (to < end && python->token.item[to].kind == SL_PYTHON_NAME && given)
			sl_follow_hold(&inner, &python->token.item[to], NULL, given);
		if (equals >= part && parameter < end && !sl_python_is(python, parameter, "*"))
			parameter = sl_python_find(python, parameter, end, " , ") + 1;
	}
	if (!inner.held_count)
		return true;
	inner.statement = function + 1;
	inner.constructs = sl_python_is(python, sl_python_word(python, function) + 1, "__init__");
	sl_follow_run(&inner, function + 1);
	*hold = inner.returned;
	if (inner.self_holds) {
		*hold = inner.constructs ? SL_HOLDS_IT : *hold;
		if (method && !is_text(token(f, root), "self"))
			sl_follow_hold(f, token(f, root), NULL, SL_HOLDS_IT);
	}
	return true;
}

/* ---- expressions */

bool sl_follow_is_without_grad(const struct sl_python *python, uint32_t statement)
{
	uint32_t header = statement;

	for (; header != NONE; header = python->statement.item[header].parent) {
		const struct sl_python_statement *s = &python->statement.item[header];
		uint32_t word = sl_python_word(python, header);

		for (uint32_t i = s->first; sl_python_is(python, word, "with") && i < s->end; i++)
			if (sl_python_is_any(python, i, " no_grad inference_mode "))
				return true;
		for (uint32_t above = header; sl_python_is(python, word, "def") && above-- > 0;) {
			const struct sl_python_statement *d = &python->statement.item[above];

			if (!sl_python_is(python, d->first, "@"))
				break;
			for (uint32_t i = d->first; i < d->end; i++)
				if (sl_python_is_any(python, i, " no_grad inference_mode "))
					return true;
		}
	}
	return false;
}

/* What is computed from a value holds it through the graph, where there is one. */
static enum sl_follow_hold computed(const struct sl_follow *f, enum sl_follow_hold hold)
{
	return hold && !sl_follow_is_without_grad(&f->file->python, f->statement) ? SL_HOLDS_GRAPH : SL_HOLDS_NOT;
}

static bool has_line(const struct sl_follow *f, uint32_t from, uint32_t end)
{
	return f->line && from < end && token(f, from)->line <= f->line && token(f, end - 1)->line >= f->line;
}

static enum sl_follow_hold arguments(struct sl_follow *f, uint32_t open, uint32_t close)
{
	enum sl_follow_hold hold = SL_HOLDS_NOT;
	uint32_t part, equals;

	for (uint32_t at = open + 1; at < close; at = part + 1) {
		part = sl_python_find(&f->file->python, at, close, " , ");
		equals = sl_python_find(&f->file->python, at, part, " = ");
		hold = larger(hold, value(f, equals < part ? equals + 1 : at, part));
	}
	return hold;
}

static bool is_to_host(const struct sl_follow *f, uint32_t open, uint32_t close)
{
	for (uint32_t i = open + 1; i < close; i++)
		if (token(f, i)->kind == SL_PYTHON_STRING && token(f, i)->size == 5 && !memcmp(token(f, i)->at + 1, "cpu", 3))
			return true;
	return false;
}

/* What ctypes is given by reference has what the call made. */
static void hold_references(struct sl_follow *f, uint32_t open, uint32_t close)
{
	for (uint32_t at = open + 1; at + 2 < close; at++) {
		bool attribute = is(f, at + 3, close, " . ");

		if (!is(f, at, close, " byref pointer addressof ") || !is(f, at + 1, close, " ( "))
			continue;
		f->self_holds |= attribute && is_text(token(f, at + 2), "self");
		sl_follow_hold(f, token(f, at + 2), attribute ? token(f, at + 4) : NULL, SL_HOLDS_IT);
	}
}

/* root: the first token of the chain; name: of the function; base: what the object holds. */
static enum sl_follow_hold call(struct sl_follow *f, uint32_t root, uint32_t name, uint32_t open, enum sl_follow_hold base)
{
	uint32_t close = token(f, open)->match;
	bool method = root != name, made;
	enum sl_follow_hold given, hold = SL_HOLDS_NOT;

	given = arguments(f, open, close);
	if (token(f, name)->kind != SL_PYTHON_NAME) /* of what a call gave */
		return larger(base, given);
	made = has_line(f, root, close + 1);
	if (made && f->callee && is_text(token(f, name), f->callee))
		return f->callee_hold;
	if (made && f->first)
		hold_references(f, open, close);
	if (is(f, name, close, method ? scalar_methods : scalar_functions) ||
	    (method && is(f, name, close, " to ") && is_to_host(f, open, close)))
		return SL_HOLDS_NOT;
	if (given && is(f, name, close, stores_first)) {
		store(f, open + 1, name, given);
		return SL_HOLDS_NOT;
	}
	if (given && !(method && is(f, name, close, SL_FOLLOW_STORES) && is_builtin(class_of(f, root))) &&
	    enter(f, name, root, method, open, &hold))
		return hold;
	if (method && is(f, name, close, SL_FOLLOW_STORES)) {
		if (given)
			store(f, root, name, given);
		return is(f, name, close, " setdefault ") ? larger(given, base) : SL_HOLDS_NOT;
	}
	if (made && !f->callee)
		return f->first ? SL_HOLDS_IT : f->callee_hold;
	if (method && is(f, name, close, views))
		return is(f, name, close, " detach ") && base == SL_HOLDS_GRAPH ? SL_HOLDS_NOT : larger(base, given);
	if (is(f, name, close, holders) || (*token(f, name)->at >= 'A' && *token(f, name)->at <= 'Z'))
		return given;
	return computed(f, larger(base, given));
}

/* An atom with what follows it: .name, (...), [...]. */
static enum sl_follow_hold primary(struct sl_follow *f, uint32_t from, uint32_t end)
{
	enum sl_follow_hold hold = SL_HOLDS_NOT;
	uint32_t at = from, close;

	if (is(f, at, end, " ( [ { ")) {
		close = token(f, at)->match;
		close = close < end ? close : end - 1;
		hold = value(f, at + 1, close);
		at = close + 1;
	} else {
		if (token(f, at)->kind == SL_PYTHON_NAME)
			hold = hold_of(f, token(f, at), at + 2 < end && is(f, at + 1, end, " . ") ? token(f, at + 2) : NULL);
		at++;
	}
	for (; at < end; at++) {
		if (is(f, at, end, " . ")) {
			if (at + 1 < end && is(f, at + 1, end, scalar_attributes))
				hold = SL_HOLDS_NOT;
			at++;
		} else if (is(f, at, end, " [ ")) {
			close = token(f, at)->match;
			if (close > end)
				break;
			value(f, at + 1, close);
			at = close;
		} else if (is(f, at, end, " ( ")) {
			close = token(f, at)->match;
			if (close >= end)
				break;
			hold = call(f, from, at - 1, at, hold);
			at = close;
		}
	}
	return hold;
}

/* [element for target in iterable if condition]; `loop` is its "for". */
static enum sl_follow_hold comprehension(struct sl_follow *f, uint32_t from, uint32_t loop, uint32_t end)
{
	const struct sl_python *python = &f->file->python;
	uint32_t colon;

	for (uint32_t at = loop, in, next; at < end; at = next) {
		in = sl_python_find(python, at + 1, end, " in ");
		next = sl_python_find(python, in, end, " for if ");
		if (is(f, at, end, " for "))
			hold_names(f, at + 1, in, value(f, in < end ? in + 1 : end, next));
	}
	colon = sl_python_find(python, from, loop, " : ");
	return value(f, colon < loop ? colon + 1 : from, loop);
}

static enum sl_follow_hold operands(struct sl_follow *f, uint32_t from, uint32_t end)
{
	static const char operators[] = " + - * / // % @ ** & | ^ << >> ";
	const struct sl_python *python = &f->file->python;
	enum sl_follow_hold hold = SL_HOLDS_NOT, one;
	uint32_t at = from, part;
	bool alone = true;

	while (at < end && is(f, at, end, " + - ~ * ** "))
		at++;
	if (at > from && !is(f, from, end, " * ** "))
		alone = false;
	for (; at < end; at = part + 1) {
		part = sl_python_find(python, at, end, operators);
		while (part < end && part > at && is(f, part - 1, end, operators)) /* a sign */
			part = sl_python_find(python, part + 1, end, operators);
		alone &= part == end && hold == SL_HOLDS_NOT;
		one = part > at ? primary(f, at, part) : SL_HOLDS_NOT;
		if (part < end || !alone)
			one = one && is(f, at, end, " [ ( ") && token(f, at)->match + 1 == part ? one : computed(f, one);
		hold = larger(hold, one);
	}
	/* the line's operator made the block */
	return !alone && f->first && has_line(f, from, end) ? SL_HOLDS_IT : hold;
}

static enum sl_follow_hold value_of(struct sl_follow *f, uint32_t from, uint32_t end)
{
	const struct sl_python *python = &f->file->python;
	enum sl_follow_hold hold;
	uint32_t at, colon;

	if (is(f, from, end, " await yield from "))
		hold = value(f, from + 1, end);
	else if (is(f, from, end, " lambda "))
		return mentioned(f, from, end) ? SL_HOLDS_IT : SL_HOLDS_NOT;
	else if ((at = sl_python_find(python, from, end, " for ")) < end)
		return comprehension(f, from, is(f, at - 1, end, " async ") ? at - 1 : at, end);
	else if ((at = sl_python_find(python, from, end, " , ")) < end)
		return larger(value(f, from, at), value(f, at + 1, end));
	else if ((at = sl_python_find(python, from, end, " := ")) < end) {
		hold = value(f, at + 1, end);
		hold_names(f, from, at, hold);
	} else if ((colon = sl_python_find(python, from, end, " : ")) < end) /* of a dictionary, or a slice */
		return value(f, colon + 1, end);
	else if ((at = sl_python_find(python, from, end, " if ")) < end) {
		colon = sl_python_find(python, at, end, " else ");
		value(f, at + 1, colon);
		return larger(value(f, from, at), value(f, colon < end ? colon + 1 : end, end));
	} else if ((at = sl_python_find(python, from, end, " or and ")) < end)
		return larger(value(f, from, at), value(f, at + 1, end));
	else if (is(f, from, end, " not ")) {
		value(f, from + 1, end);
		return SL_HOLDS_NOT;
	} else if ((at = sl_python_find(python, from, end, " == != < > <= >= in is ")) < end) {
		value(f, from, at);
		value(f, at + 1, end);
		return SL_HOLDS_NOT;
	} else
		return operands(f, from, end);
	if (is(f, from, end, " yield "))
		f->returned = larger(f->returned, hold);
	return hold;
}

static enum sl_follow_hold value(struct sl_follow *f, uint32_t from, uint32_t end)
{
	enum sl_follow_hold hold;

	if (from >= end || f->depth >= DEPTH || is_spent(f, end - from))
		return SL_HOLDS_NOT;
	f->depth++;
	hold = value_of(f, from, end);
	f->depth--;
	return hold;
}

/* ---- statements */

/* True: a sum that begins with a number or None before the loop, or an attribute, or a global: it lives on. */
static bool is_sum(struct sl_follow *f, const struct sl_python_token *name)
{
	const struct sl_python *python = &f->file->python;
	uint32_t made = assigned(f, name, f->function), first;

	if (lives(f, name) == WITH_PASS || is_parameter(f, name, f->function))
		return false;
	if (made == NONE)
		return true;
	first = python->statement.item[made].first + 2;
	return loop_of(f, f->statement) != NONE && first < python->token.count &&
	       (f->function == NONE || token(f, first)->kind == SL_PYTHON_NUMBER || is(f, first, first + 1, " None torch [ "));
}

static bool is_joined(const struct sl_follow *f, uint32_t from, uint32_t end)
{
	for (; from < end; from++)
		if (is(f, from, end, " cat stack concat concatenate vstack hstack "))
			return true;
	return false;
}

/* The target's own name or attribute is in the value: it holds what it held before. */
static bool has_itself(const struct sl_follow *f, uint32_t from, uint32_t end, uint32_t at, uint32_t stop)
{
	for (uint32_t size = end - from, i; at + size <= stop; at++) {
		for (i = 0; i < size && sl_python_same(token(f, from + i), token(f, at + i)); i++)
			;
		if (i == size && !is(f, at - 1, stop, " . "))
			return true;
	}
	return false;
}

static bool has_loop(const struct sl_follow *f, uint32_t from, uint32_t end)
{
	for (; from < end; from++)
		if (is(f, from, end, " for "))
			return true;
	return false;
}

static void assign(struct sl_follow *f, uint32_t from, uint32_t end, bool adds, uint32_t at, uint32_t stop,
		   enum sl_follow_hold hold)
{
	bool itself = adds || has_itself(f, from, end, at, stop), joined = is_joined(f, at, stop);
	const struct sl_python_token *name = token(f, from);

	if (from >= end || name->kind != SL_PYTHON_NAME)
		return;
	if (end == from + 1) {
		if (hold && itself && is_sum(f, name) && !joined) {
			find(f, from, is(f, at, stop, " [ ( ") ? SL_STORE_CONTAINER : SL_STORE_SUM, hold);
			sl_follow_hold(f, name, NULL, hold);
			return;
		}
		if (hold && has_loop(f, at, stop) && is(f, at, stop, " [ { ") && loop_of(f, f->statement) == NONE &&
		    !f->of->looped && has_line(f, at, stop))
			find(f, from, SL_STORE_LOCAL, hold);
		if (hold || !itself)
			sl_follow_hold(f, name, NULL, hold);
	} else if (is(f, end - 1, end, " ] ")) {
		uint32_t open = end - 1;

		while (open > from && token(f, open)->match != end - 1)
			open--;
		value(f, open + 1, end - 1);
		if (hold && open + 2 == end - 1 &&
		    (token(f, open + 1)->kind == SL_PYTHON_STRING || token(f, open + 1)->kind == SL_PYTHON_NUMBER)) {
			if (adds)
				find(f, from, SL_STORE_SUM, hold);
			sl_follow_hold(f, name, NULL, hold);
		} else if (hold)
			store(f, from, from, hold);
	} else if (hold) {
		if (itself && lives(f, name) == LONGER)
			find(f, from, is(f, at, stop, " [ ") ? SL_STORE_CONTAINER : SL_STORE_SUM, hold);
		f->self_holds |= is_text(name, "self");
		sl_follow_hold(f, name, token(f, end - 1), hold);
	}
}

/* a, b = x, y: each its own. */
static void assign_all(struct sl_follow *f, uint32_t from, uint32_t end, bool adds, uint32_t at, uint32_t stop,
		       enum sl_follow_hold hold)
{
	const struct sl_python *python = &f->file->python;
	uint32_t part, value_end;
	bool pairs = sl_python_find(python, from, end, " , ") < end && sl_python_find(python, at, stop, " , ") < stop &&
		     sl_python_find(python, at, stop, " for ") == stop;

	if (is(f, from, end, " ( [ ") && token(f, from)->match == end - 1) {
		from++;
		end--;
	}
	for (; from < end; from = part + 1) {
		part = sl_python_find(python, from, end, " , ");
		value_end = pairs ? sl_python_find(python, at, stop, " , ") : stop;
		assign(f, from + (uint32_t)is(f, from, part, " * "), part, adds, at, value_end,
		       pairs ? value(f, at, value_end) : hold);
		at = pairs && value_end < stop ? value_end + 1 : at;
	}
}

static void assignment(struct sl_follow *f, uint32_t from, uint32_t end)
{
	static const char adds[] = " += -= *= /= |= @= ";
	const struct sl_python *python = &f->file->python;
	uint32_t first = sl_python_find(python, from, end, " = += -= *= /= |= @= "), last = first, next, colon;
	enum sl_follow_hold hold;

	if (first == end) {
		value(f, from, end);
		return;
	}
	while ((next = sl_python_find(python, last + 1, end, " = ")) < end)
		last = next;
	hold = value(f, last + 1, end);
	for (; from < last; from = next + 1) {
		next = sl_python_find(python, from, last, " = += -= *= /= |= @= ");
		colon = sl_python_find(python, from, next, " : ");
		assign_all(f, from, colon, is(f, next, end, adds), last + 1, end, hold);
	}
}

static bool is_cached(const struct sl_follow *f, uint32_t *at)
{
	const struct sl_python *python = &f->file->python;

	for (uint32_t above = f->function; above != NONE && above-- > 0;) {
		const struct sl_python_statement *s = &python->statement.item[above];

		if (!sl_python_is(python, s->first, "@"))
			return false;
		for (uint32_t i = s->first; i < s->end; i++)
			if (sl_python_is_any(python, i, " lru_cache cache cached memoize ")) {
				*at = s->first;
				return true;
			}
	}
	return false;
}

static void look(struct sl_follow *f, uint32_t number)
{
	const struct sl_python *python = &f->file->python;
	const struct sl_python_statement *s = &python->statement.item[number];
	uint32_t word = sl_python_word(python, number), at, cached, end = s->end;
	enum sl_follow_hold hold;

	f->statement = number;
	if (is(f, word, end, " return ")) {
		f->returned = larger(f->returned, value(f, word + 1, end));
		if (f->returned == SL_HOLDS_IT && is_cached(f, &cached))
			find(f, cached, SL_STORE_CONTAINER, SL_HOLDS_IT);
	} else if (is(f, word, end, LOOPS) && is(f, word, end, " for ")) {
		at = sl_python_find(python, word, end, " in ");
		hold = value(f, at < end ? at + 1 : end, end);
		if (!f->first && !f->callee && has_line(f, at, end)) /* a generator made it */
			hold = larger(hold, f->callee_hold);
		hold_names(f, word + 1, at, hold);
	} else if (is(f, word, end, " with ")) {
		for (uint32_t from = word + 1, part, as; from < end; from = part + 1) {
			part = sl_python_find(python, from, end, " , ");
			as = sl_python_find(python, from, part, " as ");
			hold_names(f, as + 1 < part ? as + 1 : part, part, value(f, from, as));
		}
	} else if (is(f, word, end, " except ")) {
		at = sl_python_find(python, word, end, " as ");
		if (at + 1 < end && (f->line || f->held_count)) /* its traceback has the frames, and they have their names */
			sl_follow_hold(f, token(f, at + 1), NULL, SL_HOLDS_GRAPH);
	} else if (is(f, word, end, " if elif while assert ")) {
		value(f, word + 1, end);
	} else if (is(f, word, end, " del ")) {
		for (uint32_t i = word + 1; i < end; i++)
			if (token(f, i)->kind == SL_PYTHON_NAME && !is(f, i + 1, end, " . [ "))
				sl_follow_hold(f, token(f, i), NULL, SL_HOLDS_NOT);
	} else if (!is(f, word, end, " raise import from global nonlocal pass break continue else try finally class def @ ")) {
		assignment(f, word, end);
	}
}

/* A function inside that mentions what is held: its name holds it too. */
static void look_inside(struct sl_follow *f, uint32_t header)
{
	const struct sl_python *python = &f->file->python;

	for (uint32_t i = header + 1; i < python->statement.count; i++) {
		if (python->statement.item[i].indent <= python->statement.item[header].indent)
			return;
		if (mentioned(f, python->statement.item[i].first, python->statement.item[i].end)) {
			sl_follow_hold(f, token(f, sl_python_word(python, header) + 1), NULL, SL_HOLDS_IT);
			return;
		}
	}
}

/* In the else of what has the line: it is not reached. */
static bool is_other_branch(const struct sl_python *python, uint32_t statement, uint32_t from)
{
	for (; statement != NONE; statement = python->statement.item[statement].parent)
		if (statement > from && sl_python_is_any(python, sl_python_word(python, statement), " else elif "))
			for (uint32_t above = from; above != NONE; above = python->statement.item[above].parent)
				if (above != from &&
				    python->statement.item[above].indent == python->statement.item[statement].indent &&
				    python->statement.item[above].parent == python->statement.item[statement].parent &&
				    sl_python_is_any(python, sl_python_word(python, above), " if elif "))
					return true;
	return false;
}

static void look_at_all(struct sl_follow *f, uint32_t from, uint32_t end, uint32_t origin)
{
	const struct sl_python *python = &f->file->python;

	for (uint32_t i = from; i < end && !is_spent(f, 8); i++) {
		const struct sl_python_statement *s = &python->statement.item[i];
		bool header = sl_python_is(python, sl_python_word(python, i), "def");

		if (f->function != NONE && i > f->function && s->indent <= python->statement.item[f->function].indent)
			return;
		if (header && sl_python_around(python, s->parent, FUNCTIONS, NONE) == f->function && f->function != NONE)
			look_inside(f, i);
		if (header || sl_python_around(python, i, FUNCTIONS, NONE) != f->function || is_other_branch(python, i, origin))
			continue;
		look(f, i);
	}
}

void sl_follow_run(struct sl_follow *f, uint32_t from)
{
	const struct sl_python *python = &f->file->python;
	uint32_t loop = NONE, at;

	if (from >= python->statement.count)
		return;
	look_at_all(f, from, (uint32_t)python->statement.count, from);
	for (at = from; at != NONE && at != f->function; at = python->statement.item[at].parent)
		if (sl_python_is_any(python, sl_python_word(python, at), LOOPS))
			loop = at;
	f->line = 0; /* around the loop, or in the next call: what is made anew is another block */
	if (loop != NONE)
		look_at_all(f, loop + 1, from, NONE);
	else if (f->self_holds && f->function != NONE && !f->constructs)
		look_at_all(f, f->function + 1, from, NONE);
}

void sl_follow_enter(struct sl_follow *f, uint32_t function)
{
	const struct sl_python *python = &f->file->python;

	f->function = function;
	f->statement = function + 1;
	for (uint32_t i = python->statement.item[function].first + 2; i < python->statement.item[function].end; i++)
		if (token(f, i)->kind == SL_PYTHON_NAME && !is(f, i, i + 1, " self cls "))
			sl_follow_hold(f, token(f, i), NULL, SL_HOLDS_IT);
	sl_follow_run(f, function + 1);
}
