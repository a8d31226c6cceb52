/* SPDX-License-Identifier: MIT */
#include "analyzer/source/flow_inner.h"

#define STEPS 3000000

bool sl_flow_is_spent(struct sl_flow *f, uint32_t tokens)
{
	f->of->steps += tokens + 1;
	return f->of->steps > STEPS;
}

void sl_flow_hold(struct sl_flow *f, const struct sl_script_token *name, const struct sl_script_token *attribute,
		  enum sl_flow_hold hold)
{
	unsigned i = 0;

	while (i < f->name_count && !(sl_script_same(f->names[i].name, name) && !f->names[i].attribute == !attribute &&
				      (!attribute || sl_script_same(f->names[i].attribute, attribute))))
		i++;
	if (i == f->name_count && (!hold || i == SL_FLOW_NAMES))
		return;
	f->name_count += i == f->name_count;
	f->names[i].name = name;
	f->names[i].attribute = attribute;
	f->names[i].hold = hold;
}

enum sl_flow_hold sl_flow_hold_of(const struct sl_flow *f, const struct sl_script_token *name,
				  const struct sl_script_token *attribute)
{
	enum sl_flow_hold hold = SL_HOLDS_NOT;

	for (unsigned i = 0; i < f->name_count; i++)
		if (sl_script_same(f->names[i].name, name) &&
		    (!attribute || !f->names[i].attribute || sl_script_same(f->names[i].attribute, attribute)))
			hold = sl_flow_larger(hold, attribute && !f->names[i].attribute && !sl_flow_is_text(attribute + 1, "(")
							    ? sl_flow_part(f->names[i].hold)
							    : f->names[i].hold);
	return hold;
}

void sl_flow_hold_names(struct sl_flow *f, uint32_t from, uint32_t end, enum sl_flow_hold hold)
{
	for (; from < end; from++)
		if (sl_flow_token(f, from)->kind == SL_SCRIPT_NAME)
			sl_flow_hold(f, sl_flow_token(f, from), NULL, hold);
}

void sl_flow_hold_targets(struct sl_flow *f, uint32_t from, uint32_t in, uint32_t at, uint32_t end)
{
	const struct sl_script *python = &f->file->python;
	bool call = sl_flow_is(f, at + 1, end, " ( ") && sl_flow_token(f, at + 1)->match == end - 1, within, counts;
	uint32_t nested = sl_flow_is(f, from, in, " ( ") && sl_flow_token(f, from)->match == in - 1, comma, part, parts, bit = 1;
	enum sl_flow_hold hold;

	from += nested;
	in -= nested;
	comma = sl_script_find(python, from, in, " , ");
	counts = call && comma < in && sl_flow_is(f, at, end, " enumerate ");
	within = counts || (call && comma < in && sl_flow_is(f, at, end, " zip "));
	if (counts || (comma < in && at + 3 < end && sl_flow_is(f, end - 3, end, " items "))) {
		sl_flow_hold_names(f, from, comma, SL_HOLDS_NOT); /* a number, a key */
		from = comma + 1;
	}
	for (at += within ? 2 : 0, end -= within; within && from < in; from = comma + 1, at = part + (part < end)) {
		comma = counts ? in : sl_script_find(python, from, in, " , ");
		part = sl_script_find(python, at, end, " , ");
		sl_flow_hold_targets(f, from, comma, at, part);
	}
	hold = sl_flow_value(f, at, end);
	if (!f->first && !f->callee && sl_flow_has_line(f, at, end)) /* a generator made it */
		hold = sl_flow_larger(hold, f->callee_hold);
	parts = sl_flow_has_line(f, at, end) ? f->callee_parts : 0;
	for (; from < in; from = comma + 1, bit <<= 1) {
		comma = sl_script_find(python, from, in, " , ");
		sl_flow_hold_names(f, from, comma, parts && !(parts & bit) ? SL_HOLDS_NOT : sl_flow_part(hold));
	}
}

enum sl_flow_hold sl_flow_mentioned(const struct sl_flow *f, uint32_t from, uint32_t end)
{
	enum sl_flow_hold hold = SL_HOLDS_NOT;

	for (; from < end; from++)
		if (sl_flow_token(f, from)->kind == SL_SCRIPT_NAME)
			hold = sl_flow_larger(hold, sl_flow_hold_of(f, sl_flow_token(f, from), NULL));
	return hold;
}

/* True: the statement gives the name its object. */
static bool binds(const struct sl_script *python, const struct sl_script_statement *s, const struct sl_script_token *name)
{
	bool with = sl_script_is(python, s->first, "with");
	uint32_t end = with ? s->end : sl_script_find(python, s->first, s->end, " = ");

	for (uint32_t at = s->first; at < end && (with || end < s->end); at++) {
		if (!with && at > s->first && sl_script_is_any(python, at, " [ ") &&
		    python->token.item[at - 1].kind == SL_SCRIPT_NAME)
			at = python->token.item[at].match; /* a key */
		if (sl_script_same(&python->token.item[at], name) &&
		    (with ? at > s->first && sl_script_is(python, at - 1, "as")
			  : !(at > s->first && sl_script_is_any(python, at - 1, " . [ : ")) &&
				     sl_script_is_any(python, at + 1, " = , : ) ")))
			return true;
	}
	return false;
}

bool sl_flow_origin(const struct sl_flow *f, uint32_t made, const struct sl_script_token *name, uint32_t *from, uint32_t *end)
{
	const struct sl_script *python = &f->file->python;
	const struct sl_script_statement *s = &python->statement.item[made];
	uint32_t equals = sl_script_find(python, s->first, s->end, " = "), at = s->first;

	*from = equals + 1;
	if (sl_script_find(python, at, equals, " , ") == equals || sl_script_find(python, *from, s->end, " , ") == s->end) {
		*end = s->end;
		return equals < s->end && sl_script_find(python, at, equals, " , ") == equals;
	}
	while (at < equals && !sl_script_same(&python->token.item[at], name)) {
		at = sl_script_find(python, at, equals, " , ") + 1;
		*from = sl_script_find(python, *from, s->end, " , ") + 1;
	}
	*end = sl_script_find(python, *from, s->end, " , ");
	return at < equals && *from < *end;
}

uint32_t sl_flow_assigned(const struct sl_flow *f, const struct sl_script_token *name, uint32_t function)
{
	const struct sl_script *python = &f->file->python;
	uint32_t found = SL_SCRIPT_NONE;

	f->of->steps += python->statement.count;
	for (uint32_t i = 0; i < python->statement.count; i++)
		if (binds(python, &python->statement.item[i], name) && (found == SL_SCRIPT_NONE || i < f->statement) &&
		    sl_script_around(python, python->statement.item[i].parent, SL_SCRIPT_FUNCTIONS, SL_SCRIPT_NONE) == function)
			found = i;
	return found;
}

static bool flow_is_parameter(const struct sl_flow *f, const struct sl_script_token *name, uint32_t function)
{
	const struct sl_script_statement *s;

	if (function == SL_SCRIPT_NONE)
		return false;
	s = &f->file->python.statement.item[function];
	for (uint32_t i = s->first + 2; i < s->end; i++)
		if (sl_script_same(sl_flow_token(f, i), name))
			return true;
	return false;
}

static uint32_t flow_loop_of(const struct sl_flow *f, uint32_t statement)
{
	return sl_script_around(&f->file->python, statement, SL_SCRIPT_LOOPS, f->function);
}

void sl_flow_find(struct sl_flow *f, uint32_t at, enum sl_flow_store store, enum sl_flow_hold hold)
{
	struct sl_flow_found found = {f->file, sl_flow_token(f, at)->line, f->function, NULL, store, hold};
	uint32_t last = at > 1 && sl_flow_is(f, at - 1, at, " . ") ? at - 2 : at;

	while (last >= at && sl_flow_is(f, last + 1, last + 2, " . "))
		last += 2;
	found.container = sl_flow_token(f, last);
	for (size_t i = 0; hold && i < f->of->found.count; i++) {
		struct sl_flow_found *other = &f->of->found.item[i];

		if (other->file == found.file && other->line == found.line) {
			if (store > other->store || (store == other->store && hold > other->hold))
				*other = found;
			return;
		}
	}
	if (hold)
		*SL_PUSH(&f->of->found) = found;
}

/* "history = self.recent[user]": what the statement gives the name lies in the object of `root`. */
static bool is_within(const struct sl_flow *f, uint32_t made, const struct sl_script_token *name,
		      const struct sl_script_token **root)
{
	uint32_t from, end, at;

	if (made >= f->statement || !sl_flow_origin(f, made, name, &from, &end) || sl_flow_token(f, from)->kind != SL_SCRIPT_NAME)
		return false;
	*root = sl_flow_token(f, from);
	for (at = from + 1; at < end; at++)
		if (sl_flow_is(f, at, end, " [ ") ||
		    (sl_flow_is(f, at, end, " ( ") && sl_flow_is(f, at - 1, end, " setdefault get ")))
			at = sl_flow_token(f, at)->match;
		else if (!sl_flow_is(f, at, end, " . ") || ++at >= end)
			return false;
	return at == end && end > from + 1;
}

enum sl_flow_lives sl_flow_lives(struct sl_flow *f, const struct sl_script_token *name)
{
	const struct sl_script_token *root;
	enum sl_flow_lives life;
	uint32_t made;

	if (sl_flow_is_text(name, "self"))
		return f->constructs ? SL_LIVES_PASS : SL_LIVES_LONGER;
	made = sl_flow_assigned(f, name, f->function);
	if (made != SL_SCRIPT_NONE && !sl_flow_is_spent(f, 1) && is_within(f, made, name, &root) && !sl_script_same(root, name)) {
		uint32_t statement = f->statement;

		f->statement = made;
		life = sl_flow_lives(f, root);
		f->statement = statement;
		return life;
	}
	if (made != SL_SCRIPT_NONE && sl_script_is(&f->file->python, f->file->python.statement.item[made].first, "with"))
		return SL_LIVES_PASS;
	if (made == SL_SCRIPT_NONE || flow_is_parameter(f, name, f->function))
		return SL_LIVES_LONGER;
	if (f->function == SL_SCRIPT_NONE)
		return flow_loop_of(f, made) == SL_SCRIPT_NONE			? SL_LIVES_LONGER
		       : flow_loop_of(f, made) == flow_loop_of(f, f->statement) ? SL_LIVES_PASS
										: SL_LIVES_FUNCTION;
	return flow_loop_of(f, made) == flow_loop_of(f, f->statement) ? SL_LIVES_PASS : SL_LIVES_FUNCTION;
}

/* The statement takes out of the container of that name: "self.batch = []", "x.batch.clear()", "done(tasks.discard)", a filter. */
static bool empties(const struct sl_script *python, const struct sl_script_statement *s, const struct sl_script_token *name)
{
	for (uint32_t at = s->first + 1; at + 2 < s->end; at++) {
		uint32_t open = at + 2, close = python->token.item[open].match;

		if (!sl_script_same(&python->token.item[at], name))
			continue;
		if (sl_script_is(python, at + 1, ".") && sl_script_is_any(python, open, " clear discard "))
			return true;
		if (sl_script_is(python, at - 1, ".") && sl_script_is(python, at + 1, "=") &&
		    (close == open + 1 || (close == s->end - 1 && sl_script_find(python, open + 1, close, " for ") < close &&
					   sl_script_find(python, open + 1, close, " if ") < close)))
			return true;
	}
	return false;
}

/* Later the function, or one that calls it, empties the container of that name. */
static bool is_emptied(const struct sl_flow *f, const struct sl_script_token *name)
{
	const struct sl_script *python = &f->file->python;
	const struct sl_script_statement *s = python->statement.item;
	uint32_t own = f->function == SL_SCRIPT_NONE ? 0 : sl_script_word(python, f->function) + 1, function;

	f->of->steps += python->token.count;
	for (uint32_t i = 0; own && i < python->statement.count; i++) {
		if (!empties(python, &s[i], name))
			continue;
		function = sl_script_around(python, i, SL_SCRIPT_FUNCTIONS, SL_SCRIPT_NONE);
		if (function == f->function && i > f->statement)
			return true;
		for (uint32_t at = function == f->function || function == SL_SCRIPT_NONE ? s[i].first : s[function].end;
		     at < s[i].first; at++)
			if (sl_script_same(&python->token.item[at], sl_flow_token(f, own)) && sl_script_is(python, at + 1, "("))
				return true;
	}
	return false;
}

void sl_flow_put(struct sl_flow *f, uint32_t root, uint32_t at, enum sl_flow_hold hold)
{
	const struct sl_script_token *name = sl_flow_token(f, root);
	enum sl_flow_store local = f->of->looped ? SL_STORE_DYING : SL_STORE_LOCAL;
	enum sl_flow_lives life;

	if (name->kind != SL_SCRIPT_NAME)
		return;
	life = at > root + 1 && is_emptied(f, sl_flow_token(f, at - 2)) ? SL_LIVES_PASS : sl_flow_lives(f, name);
	if (life != SL_LIVES_PASS)
		sl_flow_find(f, at, life == SL_LIVES_LONGER ? SL_STORE_CONTAINER : local, hold);
	if (life == SL_LIVES_LONGER)
		return;
	f->self_holds |= sl_flow_is_text(name, "self");
	sl_flow_hold(f, name, at > root + 2 ? sl_flow_token(f, root + 2) : NULL, hold);
}

/*
 * True: the sum lives on.  It is an attribute, a global, or begins before the loop with a number, None or a container.
 * called: a call makes its next value.  Then only a graph keeps the value before, until a loop begins the sum anew.
 */
static bool is_sum(struct sl_flow *f, const struct sl_script_token *name, bool called)
{
	const struct sl_script *python = &f->file->python;
	uint32_t made = sl_flow_assigned(f, name, f->function), first, end;

	if (sl_flow_lives(f, name) == SL_LIVES_PASS || flow_is_parameter(f, name, f->function))
		return false;
	if (called &&
	    (sl_flow_is_without_grad(python, f->statement) || (made != SL_SCRIPT_NONE && flow_loop_of(f, made) != SL_SCRIPT_NONE)))
		return false;
	if (made == SL_SCRIPT_NONE)
		return true;
	return flow_loop_of(f, f->statement) != SL_SCRIPT_NONE && sl_flow_origin(f, made, name, &first, &end) &&
	       (f->function == SL_SCRIPT_NONE || sl_flow_token(f, first)->kind == SL_SCRIPT_NUMBER ||
		sl_flow_is(f, first, first + 1, " None torch [ { ") || sl_flow_token(f, first)->match == first + 1);
}

/* The target's own name or attribute is in the value: it holds what it held before. */
static bool has_itself(const struct sl_flow *f, uint32_t from, uint32_t end, uint32_t at, uint32_t stop)
{
	for (uint32_t size = end - from, i; at + size <= stop; at++) {
		for (i = 0; i < size && sl_script_same(sl_flow_token(f, from + i), sl_flow_token(f, at + i)); i++)
			;
		if (i == size && !sl_flow_is(f, at - 1, stop, " . "))
			return true;
	}
	return false;
}

static void assign(struct sl_flow *f, uint32_t from, uint32_t end, bool adds, uint32_t at, uint32_t stop, enum sl_flow_hold hold)
{
	bool itself = adds || (!f->linked && has_itself(f, from, end, at, stop)),
	     joined = sl_script_has(&f->file->python, at, stop, " cat stack concat concatenate vstack hstack ");
	const struct sl_script_token *name = sl_flow_token(f, from);

	if (from >= end || name->kind != SL_SCRIPT_NAME || (adds && hold && sl_flow_enter_method(f, from, end - 1, "__iadd__")))
		return;
	if (end == from + 1) {
		bool called = !adds && !sl_flow_is(f, at, stop, " [ ( { ") &&
			      sl_script_find(&f->file->python, at, stop, " + - * / ") == stop;

		if (hold && itself && is_sum(f, name, called) && !joined) {
			sl_flow_find(f, from, sl_flow_is(f, at, stop, " [ ( ") ? SL_STORE_CONTAINER : SL_STORE_SUM,
				     called ? SL_HOLDS_GRAPH : hold);
			sl_flow_hold(f, name, NULL, hold);
			return;
		}
		if (hold && sl_script_has(&f->file->python, at, stop, " for map ") &&
		    sl_flow_is(f, at, stop, " [ { list tuple dict ") && flow_loop_of(f, f->statement) == SL_SCRIPT_NONE &&
		    !f->of->looped && sl_flow_has_line(f, at, stop))
			sl_flow_find(f, from, SL_STORE_LOCAL, hold);
		if (hold || !itself)
			sl_flow_hold(f, name, NULL, hold);
	} else if (sl_flow_is(f, end - 1, end, " ] ")) {
		uint32_t open = end - 1;

		while (open > from && sl_flow_token(f, open)->match != end - 1)
			open--;
		sl_flow_value(f, open + 1, end - 1);
		if (hold && open + 2 == end - 1 &&
		    ((sl_flow_token(f, open + 1)->kind == SL_SCRIPT_STRING && !strchr("fF", *sl_flow_token(f, open + 1)->at)) ||
		     sl_flow_token(f, open + 1)->kind == SL_SCRIPT_NUMBER)) {
			if (adds)
				sl_flow_find(f, from, SL_STORE_SUM, hold);
			sl_flow_hold(f, name, NULL, hold);
		} else if (hold && !sl_flow_enter_method(f, from, open - 1, "__setitem__"))
			sl_flow_put(f, from, from, hold);
	} else if (hold) {
		if (f->link && sl_script_same(f->link, sl_flow_token(f, at)) && at + 1 == stop)
			sl_flow_find(f, from, SL_STORE_CONTAINER, hold);
		if (itself && sl_flow_lives(f, name) == SL_LIVES_LONGER &&
		    !empties(&f->file->python, &f->file->python.statement.item[f->statement], sl_flow_token(f, end - 1)))
			sl_flow_find(f, from,
				     sl_flow_is(f, at, stop, " [ ") || sl_flow_is(f, at - 1, stop, " |= ") ? SL_STORE_CONTAINER
													   : SL_STORE_SUM,
				     hold);
		if (sl_flow_is_text(name, "ctx") && hold == SL_HOLDS_IT) /* a Function of autograd: its graph is of what it gives */
			sl_flow_find(f, from, SL_STORE_SUM, hold);
		f->self_holds |= sl_flow_is_text(name, "self");
		sl_flow_hold(f, name, sl_flow_token(f, end - 1), hold);
	}
}

/* a, b = x, y: each its own. */
static void assign_all(struct sl_flow *f, uint32_t from, uint32_t end, bool adds, uint32_t at, uint32_t stop,
		       enum sl_flow_hold hold)
{
	const struct sl_script *python = &f->file->python;
	uint32_t part, value_end, parts = 0, bit = 1;
	bool pairs = sl_script_find(python, from, end, " , ") < end && sl_script_find(python, at, stop, " , ") < stop &&
		     sl_script_find(python, at, stop, " for ") == stop;

	if (sl_flow_is(f, from, end, " ( [ ") && sl_flow_token(f, from)->match == end - 1) {
		from++;
		end--;
	}
	if (!pairs && sl_script_find(python, from, end, " , ") < end) {
		hold = sl_flow_part(hold);
		parts = sl_flow_has_line(f, at, stop) && sl_script_find(python, at, stop, " [ + - * / ") == stop ? f->callee_parts
														 : 0;
	}
	for (; from < end; from = part + 1, bit <<= 1) {
		part = sl_script_find(python, from, end, " , ");
		value_end = pairs ? sl_script_find(python, at, stop, " , ") : stop;
		assign(f, from + (uint32_t)sl_flow_is(f, from, part, " * "), part, adds, at, value_end,
		       pairs			 ? sl_flow_value(f, at, value_end)
		       : parts && !(parts & bit) ? SL_HOLDS_NOT
						 : hold);
		at = pairs && value_end < stop ? value_end + 1 : at;
	}
}

static void assignment(struct sl_flow *f, uint32_t from, uint32_t end)
{
	static const char adds[] = " += -= *= /= |= @= ";
	const struct sl_script *python = &f->file->python;
	uint32_t first = sl_script_find(python, from, end, " = += -= *= /= |= @= "), last = first, next, colon;
	enum sl_flow_hold hold;

	if (first == end) {
		sl_flow_value(f, from, end);
		return;
	}
	while ((next = sl_script_find(python, last + 1, end, " = ")) < end)
		last = next;
	f->linked = false;
	hold = sl_flow_value(f, last + 1, end);
	for (; from < last; from = next + 1) {
		next = sl_script_find(python, from, last, " = += -= *= /= |= @= ");
		colon = sl_script_find(python, from, next, " : ");
		assign_all(f, from, colon, sl_flow_is(f, next, end, adds), last + 1, end, hold);
	}
}

/* The function's value is remembered, by its object or for all calls: at token `at`. */
static bool is_cached(const struct sl_flow *f, uint32_t *at, bool *by_object)
{
	const struct sl_script *python = &f->file->python;

	for (uint32_t above = f->function; above != SL_SCRIPT_NONE && above-- > 0;) {
		const struct sl_script_statement *s = &python->statement.item[above];

		if (!sl_script_is(python, s->first, "@"))
			return false;
		*at = s->first;
		*by_object |= sl_script_has(python, s->first, s->end, " cached_property ");
		if (sl_script_has(python, s->first, s->end, " lru_cache cache cached_property "))
			return true;
	}
	return false;
}

static void look(struct sl_flow *f, uint32_t number)
{
	const struct sl_script *python = &f->file->python;
	const struct sl_script_statement *s = &python->statement.item[number];
	uint32_t word = sl_script_word(python, number), at, cached, end = s->end;

	f->statement = number;
	if (sl_flow_is(f, word, end, " return ")) {
		sl_flow_return(f, word + 1, end, sl_flow_value(f, word + 1, end));
		if (f->returned >= SL_HOLDS_PART && is_cached(f, &cached, &f->self_holds))
			sl_flow_find(f, cached, f->self_holds ? SL_STORE_SUM : SL_STORE_CONTAINER, SL_HOLDS_IT);
	} else if (sl_flow_is(f, word, end, SL_SCRIPT_LOOPS) && sl_flow_is(f, word, end, " for ")) {
		at = sl_script_find(python, word, end, " in ");
		sl_flow_hold_targets(f, word + 1, at, at < end ? at + 1 : end, end);
	} else if (sl_flow_is(f, word, end, " with ")) {
		for (uint32_t from = word + 1, part, as; from < end; from = part + 1) {
			part = sl_script_find(python, from, end, " , ");
			as = sl_script_find(python, from, part, " as ");
			sl_flow_hold_names(f, as + 1 < part ? as + 1 : part, part, sl_flow_value(f, from, as));
		}
	} else if (sl_flow_is(f, word, end, " except ")) {
		at = sl_script_find(python, word, end, " as ");
		if (at + 1 < end && !f->of->found.count) /* its traceback has the frames, and they have their names */
			sl_flow_hold(f, sl_flow_token(f, at + 1), NULL, SL_HOLDS_GRAPH);
	} else if (sl_flow_is(f, word, end, " if elif while assert ")) {
		sl_flow_value(f, word + 1, end);
	} else if (sl_flow_is(f, word, end, " del ")) {
		for (uint32_t i = word + 1; i < end; i++)
			if (sl_flow_token(f, i)->kind == SL_SCRIPT_NAME && !sl_flow_is(f, i + 1, end, " . [ "))
				sl_flow_hold(f, sl_flow_token(f, i), NULL, SL_HOLDS_NOT);
	} else if (!sl_flow_is(f, word, end,
			       " raise import from global nonlocal pass break continue else try finally class def @ ")) {
		assignment(f, word, end);
	}
}

/* A function inside that mentions what is held: its name holds it too. */
static void look_inside(struct sl_flow *f, uint32_t header)
{
	const struct sl_script *python = &f->file->python;

	for (uint32_t i = header + 1; i < python->statement.count; i++) {
		if (python->statement.item[i].indent <= python->statement.item[header].indent)
			return;
		if (sl_flow_mentioned(f, python->statement.item[i].first, python->statement.item[i].end)) {
			sl_flow_hold(f, sl_flow_token(f, sl_script_word(python, header) + 1), NULL, SL_HOLDS_IT);
			return;
		}
	}
}

static void look_at_all(struct sl_flow *f, uint32_t from, uint32_t end)
{
	const struct sl_script *python = &f->file->python;

	for (uint32_t i = from; i < end && !sl_flow_is_spent(f, 8); i++) {
		const struct sl_script_statement *s = &python->statement.item[i];
		bool header = sl_script_is(python, sl_script_word(python, i), "def");

		if (f->function != SL_SCRIPT_NONE && i > f->function && s->indent <= python->statement.item[f->function].indent)
			return;
		if (header && sl_script_around(python, s->parent, SL_SCRIPT_FUNCTIONS, SL_SCRIPT_NONE) == f->function &&
		    f->function != SL_SCRIPT_NONE)
			look_inside(f, i);
		if (header || sl_script_around(python, i, SL_SCRIPT_FUNCTIONS, SL_SCRIPT_NONE) != f->function)
			continue;
		look(f, i);
	}
}

void sl_flow_run(struct sl_flow *f, uint32_t from)
{
	const struct sl_script *python = &f->file->python;
	uint32_t loop = SL_SCRIPT_NONE, at, behind;

	if (from >= python->statement.count)
		return;
	look_at_all(f, from, (uint32_t)python->statement.count);
	for (at = from; at != SL_SCRIPT_NONE && at != f->function; at = python->statement.item[at].parent)
		if (sl_script_is_any(python, sl_script_word(python, at), SL_SCRIPT_LOOPS))
			loop = at;
	f->line = 0; /* around the loop, or in the next call: what is made anew is another block */
	for (behind = loop + 1; loop != SL_SCRIPT_NONE && behind < python->statement.count; behind++)
		if (python->statement.item[behind].indent <= python->statement.item[loop].indent)
			break;
	if (loop != SL_SCRIPT_NONE)
		look_at_all(f, loop + 1, behind);
}
