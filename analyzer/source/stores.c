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

	while (i < f->held_count && !(sl_script_same(f->held[i].name, name) && !f->held[i].attribute == !attribute &&
				      (!attribute || sl_script_same(f->held[i].attribute, attribute))))
		i++;
	if (i == f->held_count && (!hold || i == SL_FLOW_NAMES))
		return;
	f->held_count += i == f->held_count;
	f->held[i].name = name;
	f->held[i].attribute = attribute;
	f->held[i].hold = hold;
}

/* attribute NULL: the object, with all its attributes. */
enum sl_flow_hold sl_flow_hold_of(const struct sl_flow *f, const struct sl_script_token *name,
				  const struct sl_script_token *attribute)
{
	enum sl_flow_hold hold = SL_HOLDS_NOT;

	for (unsigned i = 0; i < f->held_count; i++)
		if (sl_script_same(f->held[i].name, name) &&
		    (!attribute || !f->held[i].attribute || sl_script_same(f->held[i].attribute, attribute)))
			hold = sl_flow_larger(hold, f->held[i].hold);
	return hold;
}

/* Hold the targets of a loop, a `with` or a comprehension. */
void sl_flow_hold_names(struct sl_flow *f, uint32_t from, uint32_t end, enum sl_flow_hold hold)
{
	for (; from < end; from++)
		if (sl_flow_token(f, from)->kind == SL_SCRIPT_NAME)
			sl_flow_hold(f, sl_flow_token(f, from), NULL, hold);
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

	for (uint32_t at = s->first; at < end && (with || end < s->end); at++)
		if (sl_script_same(&python->token.item[at], name) &&
		    (with ? at > s->first && sl_script_is(python, at - 1, "as")
			  : !(at > s->first && sl_script_is_any(python, at - 1, " . [ : ")) &&
				     sl_script_is_any(python, at + 1, " = , : ) ")))
			return true;
	return false;
}

/* The last statement of the function before the one that is looked at which gives the name its object; else the first. */
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

bool sl_flow_is_parameter(const struct sl_flow *f, const struct sl_script_token *name, uint32_t function)
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

uint32_t sl_flow_loop_of(const struct sl_flow *f, uint32_t statement)
{
	return sl_script_around(&f->file->python, statement, SL_SCRIPT_LOOPS, f->function);
}

void sl_flow_find(struct sl_flow *f, uint32_t at, enum sl_flow_store store, enum sl_flow_hold hold)
{
	struct sl_flow_found found = {f->file, sl_flow_token(f, at)->line, f->function, store, hold};

	for (size_t i = 0; i < f->of->found.count; i++) {
		struct sl_flow_found *other = &f->of->found.item[i];

		if (other->file == found.file && other->line == found.line) {
			if (store > other->store || (store == other->store && hold > other->hold))
				*other = found;
			return;
		}
	}
	*SL_PUSH(&f->of->found) = found;
}

/* How long the object of a name lives, seen from the statement that is looked at. */
enum sl_flow_lives sl_flow_lives(struct sl_flow *f, const struct sl_script_token *name)
{
	uint32_t made;

	if (sl_flow_is_text(name, "self"))
		return f->constructs ? SL_LIVES_PASS : SL_LIVES_LONGER;
	made = sl_flow_assigned(f, name, f->function);
	if (made != SL_SCRIPT_NONE && sl_script_is(&f->file->python, f->file->python.statement.item[made].first, "with"))
		return SL_LIVES_PASS;
	if (made == SL_SCRIPT_NONE || sl_flow_is_parameter(f, name, f->function))
		return SL_LIVES_LONGER;
	if (f->function == SL_SCRIPT_NONE)
		return sl_flow_loop_of(f, made) == SL_SCRIPT_NONE		      ? SL_LIVES_LONGER
		       : sl_flow_loop_of(f, made) == sl_flow_loop_of(f, f->statement) ? SL_LIVES_PASS
										      : SL_LIVES_FUNCTION;
	return sl_flow_loop_of(f, made) == sl_flow_loop_of(f, f->statement) ? SL_LIVES_PASS : SL_LIVES_FUNCTION;
}

/* The object that the tokens from `root` on name has it now; `at` is the line. */
void sl_flow_put(struct sl_flow *f, uint32_t root, uint32_t at, enum sl_flow_hold hold)
{
	const struct sl_script_token *name = sl_flow_token(f, root);
	enum sl_flow_lives life;

	if (name->kind != SL_SCRIPT_NAME)
		return;
	life = sl_flow_lives(f, name);
	if (life != SL_LIVES_PASS)
		sl_flow_find(f, at, life == SL_LIVES_LONGER ? SL_STORE_CONTAINER : SL_STORE_LOCAL, hold);
	if (life == SL_LIVES_LONGER)
		return;
	f->self_holds |= sl_flow_is_text(name, "self");
	sl_flow_hold(f, name, NULL, hold);
}
