/* SPDX-License-Identifier: MIT */
/* Changes of the optimizer's state, of gradients, and of copies of the model. */
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/change.h"
#include "analyzer/fit/program.h"
#include "analyzer/fit/rest_of_step.h"

#define UPDATES_MIN 2	/* by the optimizer, with gradients that stay */
#define BLOCK_8BIT  256 /* elements of state with a scale of 4 bytes */
#define STATE_8BIT  (16 << 10)
#define OWN_STEP    2 /* temporaries of an optimizer with small state, of the largest gradient's size */

/* True: the most was held in an update, with temporaries of all parameters: an optimizer with small state has its own. */
static bool is_of_update(const struct sl_fit_program *p)
{
	uint64_t bytes = 0;
	size_t at = p->highest;

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->birth <= at && life->death > at && life->death != SL_FIT_GAP && sl_fit_program_maker(p, i)->optimizer &&
		    !sl_fit_program_maker(p, i)->backward)
			bytes += life->bytes;
	}
	return sl_fit_change_matters(p, bytes);
}

/* True: with SL_FIT_REST_STATE, a temporary of the optimizer's step. */
static bool fit_program_updates(const struct sl_fit_program *p, uint32_t life)
{
	const struct sl_fit_life *at = &p->lives.item[life];

	return p->rest == SL_FIT_REST_STATE && at->birth >= p->states && at->birth < p->end && at->python == p->update;
}

/* Blocks of the optimizer's state, of this size or larger, become this part of it. */
static bool shrink_state(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p, double part,
			 uint64_t least)
{
	const struct sl_fit_place *place = NULL;
	uint64_t bytes = 0;

	change->given = "the state is float32"; /* no trace has its type */
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		e->gone[i] = fit_program_updates(p, i); /* another optimizer has temporaries of its own */
		if (e->gone[i] || life->death != SL_FIT_GAP || life->before || !sl_fit_program_maker(p, i)->optimizer ||
		    sl_fit_program_maker(p, i)->backward || life->bytes < least)
			continue;
		e->scale[i] = part;
		bytes += life->bytes;
		place = sl_fit_program_own(sl_fit_program_maker(p, i));
	}
	e->scaled = true;
	if (p->rest == SL_FIT_REST_STATE) {
		change->given = "the state is float32, updated by parameter";
		e->passes_max = SL_PASSES_STEP; /* of all at once it needs as much again for a moment */
		e->extra = OWN_STEP * p->temporary;
		e->extra_from = p->states;
	} else {
		change->about |= is_of_update(p);
	}
	sl_fit_change_name(change, place);
	return bytes && sl_fit_change_matters(p, bytes);
}

/* A step of all parameters at once, in its temporaries: one after the other has those of one. */
bool sl_fit_change_one_by_one(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_stack *failed =
		p->failed == SL_FIT_GAP ? NULL : sl_fit_program_stack(p, p->whole.ops.item[p->failed].python);
	uint64_t bytes = 0, largest = 0;
	bool together = false;

	for (unsigned i = 0; failed && i < failed->count; i++)
		together |= failed->places[i].function && strstr(failed->places[i].function, "_multi_tensor_");
	for (uint32_t i = 0; together && i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->python != p->whole.ops.item[p->failed].python || life->death == SL_FIT_GAP)
			continue;
		e->gone[i] = true;
		bytes += life->birth <= p->failed ? life->bytes : 0;
		largest = life->bytes > largest ? life->bytes : largest;
		e->extra_from = e->extra_from == SL_FIT_GAP ? life->birth : e->extra_from;
	}
	e->extra = OWN_STEP * largest;
	if (together)
		sl_fit_change_name(change, sl_fit_program_own(failed));
	return bytes && sl_fit_change_matters(p, bytes);
}

bool sl_fit_change_half_state(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	return shrink_state(e, change, p, 0.5, 0);
}

/* State of float32 in 8 bits: that it has this type is not in the recording, so that it is never called fitting. */
bool sl_fit_change_state_8bit(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	e->passes_max = SL_PASSES_STEP;
	return shrink_state(e, change, p, 0.25 + 1.0 / BLOCK_8BIT, STATE_8BIT);
}

/*
 * Gradients that the program zeroes: each was made in one step and stays, and each later backward pass makes a block of its size
 * beside it, in the same order.  With None the old one goes as a step begins, and the new one stays.  Where the program zeroes
 * them is not in the recording, so that it is never called fitting.  Between steps that add their gradients up on purpose the
 * optimizer makes nothing.
 */
bool sl_fit_change_set_to_none(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	struct sl_fit_gradients old = {0};
	unsigned first, step = 0, updates = 0;
	uint64_t bytes = 0;
	size_t next = 0;

	sl_fit_rest_gradients(&old, p);
	first = old.list.count ? p->lives.item[old.list.item[0]].step : 0;
	for (uint32_t i = 0; i < p->lives.count && old.list.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);

		if (life->step <= first || life->step > p->steps.count)
			continue;
		next = life->step == step ? next : 0;
		step = life->step;
		if (maker->optimizer && next == old.list.count) {
			updates++;
			next++; /* counted */
			sl_fit_change_name(change, sl_fit_program_own(maker));
		}
		if (!maker->backward || next >= old.list.count || life->death == SL_FIT_GAP ||
		    life->bytes != p->lives.item[old.list.item[next]].bytes)
			continue;
		e->dies[old.list.item[next]] = p->steps.item[step - 1];
		e->dies[i] = p->whole.ops.count;
		old.list.item[next++] = i;
		bytes += life->bytes;
	}
	SL_DROP(&old.list);
	e->passes_max = SL_PASSES_STEP;
	return updates >= UPDATES_MIN && sl_fit_change_matters(p, bytes / updates);
}

bool sl_fit_change_no_second_copy(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_place *place = NULL;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->death != SL_FIT_GAP || life->before || !sl_fit_program_maker(p, i)->copies)
			continue;
		e->gone[i] = true;
		bytes += life->bytes;
		place = sl_fit_program_own(sl_fit_program_maker(p, i));
	}
	sl_fit_change_name(change, place);
	return bytes && sl_fit_change_matters(p, bytes);
}
