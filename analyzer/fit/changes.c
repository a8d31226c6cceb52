/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/changes.h"

#include <string.h>

static bool set(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const char *at;

	if (p->whole.seeds.count)
		return false; /* the blocks from before the window would lie elsewhere */
	e->made = p->recorded->settings;
	if (sl_fit_settings_parse(&e->made, change->settings, p->recorded->release, &at) ||
	    !memcmp(&e->made, &p->recorded->settings, sizeof(e->made)))
		return false;
	if (e->made.gc_threshold > 0 && !p->recorded->limits && !(e->made.fraction > 0))
		return false; /* it does nothing without a memory fraction */
	e->settings = &e->made;
	return true;
}

/*
 * A model was loaded in a function that loaded another before, and called it meanwhile.  Whether that is called again is not in the
 * recording, and neither is what the second one still needs.
 */
static bool free_before_build(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_stack *failed =
		p->failed == SL_FIT_GAP ? NULL : sl_fit_program_stack(p, p->whole.ops.item[p->failed].python);
	size_t begin = SL_FIT_GAP, called = SL_FIT_GAP;
	uint64_t bytes = 0;

	for (unsigned depth = 0; failed && depth < failed->count && !bytes; depth++) {
		const struct sl_fit_place *place = &failed->places[depth], *load = failed->loads ? place : NULL;

		if (!place->own)
			continue;
		begin = called = SL_FIT_GAP;
		for (size_t i = p->failed + 1; i--;) {
			const struct sl_fit_op *op = &p->whole.ops.item[i];
			const struct sl_fit_stack *stack = op->verb == SL_FIT_ALLOC ? sl_fit_program_stack(p, op->python) : NULL;

			if (!stack || stack->count <= depth || !place->file || !stack->places[depth].file ||
			    strcmp(stack->places[depth].file, place->file) != 0 ||
			    strcmp(stack->places[depth].function ? stack->places[depth].function : "",
				   place->function ? place->function : "") != 0)
				continue;
			load = load || !stack->loads ? load : &stack->places[depth];
			if (called == SL_FIT_GAP && load && stack->places[depth].line == load->line)
				begin = i;
			else if (load && stack->module && !stack->loads)
				called = i;
			else if (called != SL_FIT_GAP && stack->loads && stack->places[depth].line != load->line &&
				 p->lives.item[op->id].death == SL_FIT_GAP) {
				e->dies[op->id] = begin;
				bytes += op->bytes;
			}
		}
		if (load)
			sl_fit_change_name(change, load);
	}
	e->passes_max = SL_PASSES_REQUEST;
	return bytes && begin != SL_FIT_GAP && sl_fit_change_matters(p, bytes);
}

/* Another framework's pool takes what it uses of it, by its own figure; what it needs in other places is not known. */
static bool limit_pool(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_beside *pool = &p->recorded->pool;

	if (!pool->bytes || pool->used >= pool->bytes)
		return false;
	e->others_less = pool->bytes - pool->used;
	e->others_less_from = pool->since;
	if (!pool->used)
		e->passes_max = SL_PASSES_REQUEST;
	sl_fit_change_name(change, sl_fit_program_own(sl_fit_program_stack(p, pool->python)));
	return sl_fit_change_matters(p, e->others_less);
}

static bool empty_cache(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	for (size_t i = 0; i < p->steps.count; i++)
		e->empties[p->steps.item[i]] = true;
	sl_fit_change_name(change, p->steps.count ? sl_fit_program_statement(p, p->whole.ops.item[p->steps.item[0]].python) : NULL);
	return p->steps.count;
}

const struct sl_fit_rule sl_fit_rules[] = {
	{"settings:expandable_segments", set, "expandable_segments:True"},
	{"settings:max_split_size_mb=128", set, "max_split_size_mb:128"},
	{"settings:garbage_collection_threshold=0.8", set, "garbage_collection_threshold:0.8"},
#define SL_FIT_RULE(kind, apply, about) {kind, apply, NULL, about},
#include "analyzer/fit/change.def"
#undef SL_FIT_RULE
	{"free_before_build", free_before_build},
	{"limit_pool", limit_pool},
	{"empty_cache_at_step", empty_cache},
	{0},
};
