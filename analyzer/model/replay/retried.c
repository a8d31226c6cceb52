/* SPDX-License-Identifier: MIT */
#include "analyzer/model/replay/replay.h"

#include "analyzer/model/counts/tracks.h"

#define LESS_MIN     8	 /* a request for at least 1/LESS_MIN of the size counts as the same request made smaller */
#define FAR_LESS_MIN 128 /* at least 1/FAR_LESS_MIN: another way to do the same; a smaller one is for something else */
#define ALIKE_MIN    8	 /* requests before the error that make it one of its kind */
#define LOOKED_AT    16	 /* newest errors that a success may follow in this way */
#define ALIKE_AFTER  2	 /* and after it */
#define FAR_MORE_MIN 2	 /* times the largest request before */

bool sl_retried_same(const struct sl_oom *oom, const struct sl_item *item)
{
	return oom->thread == item->thread && oom->api == item->event->api && oom->requested_bytes == item->event->bytes &&
	       (oom->device < 0 || item->event->device < 0 || oom->device == item->event->device);
}

static bool is_one_function(const struct sl_defs *defs, uint32_t id, uint32_t other)
{
	const struct sl_python_frame *a = sl_defs_frame(defs, id), *b = sl_defs_frame(defs, other);

	return a && b && a->file == b->file && a->function && b->function && !strcmp(a->function, b->function);
}

/* The stacks of an error and of another request, with equally many frames, innermost first. */
struct sl_stacks_of_two {
	const struct sl_defs *defs;
	const uint32_t *lines[2]; /* NULL: compare the program counters */
	const uint64_t *pcs[2];
	uint32_t count; /* 0: the stacks differ in depth */
};

static struct sl_stacks_of_two both_of(const struct sl_defs *defs, const struct sl_oom *oom, const struct sl_event *event)
{
	const struct sl_python_stack *a = sl_defs_python(defs, oom->stack.python), *b = sl_defs_python(defs, event->python);
	const struct sl_native_stack *c = sl_defs_native(defs, oom->stack.native), *d = sl_defs_native(defs, event->native);

	if (a && b && a->count == b->count)
		return (struct sl_stacks_of_two){.defs = defs, .lines = {a->frames, b->frames}, .count = a->count};
	if (!a && !b && c && d && c->count == d->count)
		return (struct sl_stacks_of_two){.defs = defs, .pcs = {c->pcs, d->pcs}, .count = c->count};
	return (struct sl_stacks_of_two){0};
}

static bool differs(const struct sl_stacks_of_two *both, uint32_t i)
{
	return both->lines[0] ? both->lines[0][i] != both->lines[1][i] : both->pcs[0][i] != both->pcs[1][i];
}

/* True: both frames are in one function, or the function is not known. */
static bool is_in_one_function(const struct sl_stacks_of_two *both, uint32_t i)
{
	return !both->lines[0] || is_one_function(both->defs, both->lines[0][i], both->lines[1][i]);
}

/* True: the same functions called each other, one of them at another line, as for a request and its replacement. */
static bool is_beside(const struct sl_stacks_of_two *both)
{
	unsigned others = 0;

	for (uint32_t i = 0; i < both->count; i++)
		if (differs(both, i) && (others++ || !is_in_one_function(both, i)))
			return false;
	return both->count;
}

/* True: one function called both of two functions: try_large() or try_small(). */
static bool is_by_another_function(const struct sl_stacks_of_two *both)
{
	uint32_t at = 0;

	while (at < both->count && !differs(both, at))
		at++;
	if (at + 1 >= both->count || (differs(both, at + 1) && !is_in_one_function(both, at + 1)))
		return false;
	for (uint32_t i = at + 2; i < both->count; i++)
		if (differs(both, i))
			return false;
	return true;
}

static bool is_at(const struct sl_oom *oom, const struct sl_event *event)
{
	return oom->stack.python ? oom->stack.python == event->python
				 : oom->stack.native == event->native && oom->stack.caller == event->caller;
}

/* True: it may be the same request, tried again at its line or at another one of its function. */
static bool is_again(const struct sl_model *model, const struct sl_oom *oom, const struct sl_event *event)
{
	const struct sl_stacks_of_two both = both_of(model->defs, oom, event);
	bool bare = !oom->stack.python && !oom->stack.native && !event->python &&
		    !event->native; /* a caller's address alone tells too little */

	return bare || is_at(oom, event) || is_beside(&both);
}

/* The thread's next call for the same thing shows whether it recovered from the error. */
void sl_retried_settle(struct sl_model *model, const struct sl_item *item, bool failed)
{
	struct sl_thread_state *state = sl_ledger_thread(model, item->thread);

	if (!state->pending)
		return;
	for (size_t i = model->ooms.count; i-- && state->pending;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->recovered >= 0 || oom->less_bytes || !sl_retried_same(oom, item))
			continue;
		oom->recovered = !failed;
		oom->in_retry = failed && is_again(model, oom, item->event);
		state->pending--;
		return; /* earlier errors of the same request were settled together with this one */
	}
}

/* True: the place asked for this size before the error's request first failed, so it is another request. */
static bool is_usual(struct sl_model *model, const struct sl_oom *oom, const struct sl_item *item)
{
	const struct sl_oom *first = model->ooms.item;
	const struct sl_track *track = sl_tracks_place(model, item);

	if (!track)
		return false;
	while (first->stack.python != oom->stack.python || first->stack.native != oom->stack.native)
		first++;
	return track->births && track->first_ns < first->time_ns;
}

static bool is_instead(struct sl_model *model, struct sl_oom *oom, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	const struct sl_stacks_of_two both = both_of(model->defs, oom, event);

	bool other_order = event->bytes < oom->asked_bytes / LESS_MIN;

	oom->elsewhere = other_order || (!is_at(oom, event) && !is_beside(&both));
	if (other_order)
		return event->bytes >= oom->asked_bytes / FAR_LESS_MIN && !is_at(oom, event) && is_beside(&both) &&
		       !is_usual(model, oom, item);
	return is_at(oom, event) ||
	       ((is_beside(&both) || is_by_another_function(&both) || oom->sought) && !is_usual(model, oom, item));
}

/* True: the request may be what followed the error: of the same call, or a tensor after an error that PyTorch reported. */
static bool is_answer(const struct sl_oom *oom, const struct sl_item *item)
{
	if (oom->thread != item->thread)
		return false;
	return item->hook->verb == SL_VERB_BLOCK_ALLOC ? oom->reported_by_torch : oom->api == item->event->api;
}

static bool is_settled(const struct sl_oom *oom)
{
	return oom->less_bytes || (oom->recovered >= 0 && !oom->reported_by_torch);
}

void sl_retried_with_less(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_oom *last = NULL;

	for (size_t i = model->ooms.count; i--;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (!is_answer(oom, item))
			continue;
		if (is_settled(oom) || item->event->bytes >= oom->asked_bytes ||
		    (last && !sl_tracks_alike(model->defs, oom->stack, last->stack)) || (!last && !is_instead(model, oom, item)))
			return;
		oom->less_bytes = item->event->bytes;
		oom->elsewhere |= last && last->elsewhere;
		sl_ledger_thread(model, item->thread)->pending -= oom->recovered < 0;
		last = oom;
	}
}

static void settle_elsewhere(struct sl_model *model, struct sl_oom *oom, uint64_t bytes)
{
	oom->less_bytes = bytes;
	oom->elsewhere = true;
	sl_ledger_thread(model, oom->thread)->pending -= oom->recovered < 0;
}

/* True: the same function asked, or one that it called; or nothing else was made since the error. */
static bool is_another_way(const struct sl_model *model, const struct sl_oom *oom, const struct sl_event *event)
{
	const struct sl_stacks_of_two both = both_of(model->defs, oom, event);

	return model->tracks.last_birth_ns <= oom->time_ns || is_at(oom, event) || is_beside(&both) ||
	       is_by_another_function(&both);
}

/* True: the call cannot give what the error's call was asked for: memory of a device is no substitute for pinned memory. */
static bool is_of_another_kind(const struct sl_oom *oom, const struct sl_item *item)
{
	return oom->scope == SL_SCOPE_HOST && item->hook->kind != SL_KIND_host_pinned;
}

/*
 * Finds errors that were got over by another call: the function, or whoever asked next, got as much there, of pinned or managed
 * memory.
 */
static void take_another_way(struct sl_model *model, const struct sl_item *item)
{
	for (size_t i = model->ooms.count; i--;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->thread != item->thread)
			continue;
		if (is_settled(oom) || oom->api == item->event->api || oom->asked_bytes != item->event->bytes ||
		    is_of_another_kind(oom, item) || !is_another_way(model, oom, item->event))
			return;
		settle_elsewhere(model, oom, item->event->bytes);
	}
}

/*
 * Finds errors after which the place went on: it was asked for far more than ever before, and then went on with what it
 * was asked for before.
 */
static void pass_over(struct sl_model *model, const struct sl_item *item)
{
	for (size_t i = model->ooms.count; i-- && i + LOOKED_AT >= model->ooms.count;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->thread == item->thread && !sl_oom_got_over(oom) && is_at(oom, item->event) &&
		    oom->place_births >= ALIKE_MIN && oom->asked_bytes >= FAR_MORE_MIN * oom->place_most &&
		    sl_tracks_place(model, item)->births >= oom->place_births + ALIKE_AFTER)
			settle_elsewhere(model, oom, item->event->bytes);
	}
}

void sl_retried_look(struct sl_model *model, const struct sl_item *item)
{
	sl_retried_with_less(model, item);
	take_another_way(model, item);
	pass_over(model, item);
}
