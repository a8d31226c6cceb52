/* SPDX-License-Identifier: MIT */
/* Calls that returned out of memory: the request, and the holders of the device. */
#include "analyzer/base/memory.h"
#include "analyzer/model/counts/moments.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/model/replay/replay.h"

#define LESS_MIN     8	 /* a request for at least 1/LESS_MIN of the size counts as the same request made smaller */
#define FAR_LESS_MIN 128 /* at least 1/FAR_LESS_MIN: another way to do the same; a smaller one is for something else */
#define ALIKE_MIN    8	 /* requests before the error that make it one of its kind */
#define LOOKED_AT    16	 /* newest errors that a success may follow in this way */
#define ALIKE_AFTER  2	 /* and after it */
#define FAR_MORE_MIN 2	 /* times the largest request before */

static bool retried_same(const struct sl_oom *oom, const struct sl_item *item)
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

/*
 * An allocation has ended: is it an earlier request that failed?  The thread's next call for the same thing shows whether it
 * recovered from the error.
 */
static void settle_retried(struct sl_model *model, const struct sl_item *item, bool failed)
{
	struct sl_thread_state *state = sl_ledger_thread(model, item->thread);

	if (!state->pending)
		return;
	for (size_t i = model->ooms.count; i-- && state->pending;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->recovered >= 0 || oom->less_bytes || !retried_same(oom, item))
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

/*
 * Finds errors that were got over with less: after one or more failures the place asked for less, of the same order, and got it; or
 * another line of the function asked for far less.
 */
static void retried_with_less(struct sl_model *model, const struct sl_item *item)
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

/* An allocation has succeeded, in place of one that failed before. */
static void look_retried(struct sl_model *model, const struct sl_item *item)
{
	retried_with_less(model, item);
	take_another_way(model, item);
	pass_over(model, item);
}

#define SOUGHT_MIN   3 /* least number of requests before, see is_sought */
#define SOUGHT_TIMES 4
#define CACHES_FREE  64 /* errors for which PyTorch's cache is looked through at no charge */

static enum sl_scope scope_of(const struct sl_item *item)
{
	switch (item->hook->verb) {
	case SL_VERB_RESERVE:
		return SL_SCOPE_ADDRESS_SPACE;
	case SL_VERB_CONTEXT_CREATE:
	case SL_VERB_PRIMARY_RETAIN:
	case SL_VERB_LIMIT:
		return SL_SCOPE_CONTEXT;
	case SL_VERB_MODULE_LOAD:
	case SL_VERB_CODE_LOAD:
		return SL_SCOPE_CODE;
	default:
		return item->event->kind == SL_KIND_host_pinned || item->event->kind == SL_KIND_host_registered ? SL_SCOPE_HOST
														: SL_SCOPE_VRAM;
	}
}

void sl_ooms_tensor(struct sl_model *model, const struct sl_item *item)
{
	if (model->ooms.count)
		retried_with_less(model, item);
}

void sl_replay_failed(struct sl_model *model)
{
	for (size_t i = 0; i < model->ooms.count; i++)
		if (model->ooms.item[i].elsewhere)
			model->ooms.item[i].less_bytes = 0;
}

/*
 * True: the place looked for the largest size that fits: it asked for more and more, at least SOUGHT_TIMES as much, and freed most
 * of it in between.
 */
static bool is_sought(const struct sl_oom *oom, const struct sl_track *track, const struct sl_track_course *course)
{
	double before = 0, first = 0;

	for (uint32_t i = 0; i < course->count; i++) {
		uint64_t births = i + 1 == course->count ? course->births_in_last : course->births_per_window;
		double mean = (double)course->windows[i].born_bytes / (double)births;

		if (mean < before)
			return false;
		first = i ? first : mean;
		before = mean;
	}
	return course->count >= SOUGHT_MIN && (double)oom->asked_bytes >= SOUGHT_TIMES * first &&
	       2 * track->live_blocks <= track->births;
}

/* True: the program got over an earlier error there with less. */
static bool was_got_over(const struct sl_model *model, const struct sl_oom *oom)
{
	for (size_t i = model->ooms.count; i--;)
		if (model->ooms.item[i].less_bytes && sl_stack_same(model->ooms.item[i].stack, oom->stack))
			return true;
	return false;
}

/* True: the request is of rows, which the driver makes longer; a failed call does not say by how much. */
static bool has_rows(const struct sl_item *item)
{
	return item->event->kind == SL_KIND_device && (strstr(item->hook->name, "Pitch") || strstr(item->hook->name, "Malloc3D"));
}

/* Takes what the place asked for before. */
static void take_place(struct sl_model *model, struct sl_oom *oom, const struct sl_item *item, const struct sl_track *track)
{
	const struct sl_track_course *course;
	bool within;

	if (!track)
		return;
	oom->place_births = track->births;
	oom->place_most = track->most_bytes;
	course = &model->tracks.course[track - model->tracks.item];
	within = course->pass == model->tracks.passes;
	oom->pass_births = within ? course->births_before : track->births;
	oom->pass_most = within ? course->most_before : track->most_bytes;
	if (has_rows(item) && oom->place_births && track->born_bytes == oom->place_births * oom->place_most)
		oom->padded_bytes = oom->place_most;
	oom->sought = was_got_over(model, oom) || is_sought(oom, track, course);
}

static struct sl_surge surge_of(const struct sl_swing *swing, uint64_t bytes)
{
	return (struct sl_surge){bytes, swing->highest, swing->count, swing->first, swing->rose};
}

/* Takes what would be held with this request, compared with earlier rises. */
static void take_surge(struct sl_model *model, struct sl_oom *oom, const struct sl_track *place)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		const struct sl_swing *swing = &model->tracks.course[i].swing;
		bool asks = track == place;
		uint64_t bytes = track->live_bytes + (asks ? oom->asked_bytes : 0);

		if (track->device != oom->device || !swing->count || bytes < swing->highest + largest)
			continue;
		largest = bytes - swing->highest;
		oom->place_rise = surge_of(swing, bytes);
		oom->surge = (uint32_t)i + 1;
	}
}

static void add_owner(struct sl_oom *oom, struct sl_owner owner)
{
	unsigned at = oom->owner_count;

	if (at == SL_OWNERS_MAX && oom->owners[at - 1].bytes >= owner.bytes)
		return;
	if (at < SL_OWNERS_MAX)
		oom->owner_count++;
	else
		at--;
	for (; at && oom->owners[at - 1].bytes < owner.bytes; at--)
		oom->owners[at] = oom->owners[at - 1];
	oom->owners[at] = owner;
}

static bool counts(const struct sl_oom *oom, const struct sl_site *site)
{
	if (oom->scope == SL_SCOPE_HOST)
		return site->kind == SL_KIND_host_pinned || site->kind == SL_KIND_host_registered;
	return (sl_model_is_on_device(site) || site->kind == SL_KIND_block) && (oom->device < 0 || site->device == oom->device);
}

/* Sites that differ in their threads, labels or calls alone are one owner, named by the largest of them. */
static void take_owners(struct sl_model *model, struct sl_oom *oom)
{
	size_t count = 2 * model->tracks.count;
	struct sl_owner *owners = sl_memory_must(calloc(count + 1, sizeof(*owners)));

	for (uint32_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		struct sl_owner *owner = &owners[2 * site->track + site->pooled];

		if (!site->live_bytes || !counts(oom, site))
			continue;
		if (!owner->bytes || site->live_bytes > model->sites.item[owner->site].live_bytes)
			owner->site = i;
		owner->bytes += site->live_bytes;
		owner->blocks += site->live_blocks;
	}
	sl_tensors_of_owners(model, owners, count);
	for (size_t i = 0; i < count; i++)
		if (owners[i].bytes)
			add_owner(oom, owners[i]);
	free(owners);
}

static uint64_t live_bytes(const struct sl_model *model, const struct sl_oom *oom)
{
	uint64_t bytes = 0;

	if (oom->scope == SL_SCOPE_HOST)
		return sl_model_row(model, SL_KIND_host_pinned, 0)->live_bytes;
	for (size_t i = 0; i < SL_COUNT(model->devices); i++)
		if (model->devices[i] && (oom->device < 0 || model->devices[i]->device == oom->device))
			bytes += model->devices[i]->known_bytes;
	return bytes;
}

/* former: the error that this one replaces, whose memory it takes. */
static void take_changes(struct sl_model *model, struct sl_oom *oom, const struct sl_device_state *device,
			 const struct sl_oom *former)
{
	uint64_t count = device->changes < device->recent_mask + 1 ? device->changes : device->recent_mask + 1;
	struct sl_known_at *changes = (struct sl_known_at *)former->changes;

	if (!changes || former->change_count < count)
		changes = sl_arena_alloc(&model->arena, (count + 1) * sizeof(*changes));
	for (uint64_t i = 0; i < count; i++)
		changes[i] = device->recent[(device->changes - count + i) & device->recent_mask];
	oom->changes = changes;
	oom->change_count = (unsigned)count;
}

/* The pool, if it was made with a maximum size, which is its `owner`; NULL: no maximum is known. */
static const struct sl_live *objects_limited_pool(const struct sl_model *model, uint64_t pool)
{
	const struct sl_live *live = pool ? sl_table_find(&model->objects[SL_OBJECT_POOL - SL_OBJECT_CONTEXT], pool) : NULL;

	return live && live->owner ? live : NULL;
}

static void take_pool(const struct sl_model *model, struct sl_oom *oom, const struct sl_event *event)
{
	const struct sl_live *pool = objects_limited_pool(model, event->object);

	if (!pool)
		return;
	oom->pool_most_bytes = pool->owner;
	oom->pool_made = pool->site;
}

/*
 * A call fails with its inner call's error when that ran out of memory for a context or code.  Both become one error: the call that
 * the program made, with the size and the device of the inner call.
 */
static enum sl_scope take_inner(struct sl_model *model, const struct sl_item *item, int *device)
{
	enum sl_scope scope = scope_of(item);

	while (model->ooms.count) {
		const struct sl_oom *inner = &model->ooms.item[model->ooms.count - 1];

		if (!inner->nested || inner->thread != item->thread || inner->time_ns < model->call_begin_ns)
			break;
		scope = inner->scope;
		*device = *device < 0 ? inner->device : *device;
		model->ooms.count--;
		model->ooms_total--;
		sl_ledger_thread(model, item->thread)->pending--;
	}
	return scope;
}

/* True: the same request failed by the event before, so that nothing has changed. */
static bool is_repeated(const struct sl_model *model, const struct sl_oom *oom, const struct sl_oom *former)
{
	return model->oom_event + 1 == model->events && sl_stack_same(oom->stack, former->stack) && oom->device == former->device &&
	       oom->scope == former->scope && oom->asked_bytes == former->asked_bytes && oom->api == former->api;
}

/*
 * Takes who held the memory, and which place rose most.  Both look at all places: an error that replaces `former`, and thus may be
 * one of any number, pays for the looks.
 */
static void take_holders(struct sl_model *model, struct sl_oom *oom, const struct sl_oom *former, const struct sl_track *place)
{
	if (former->time_ns && is_repeated(model, oom, former)) {
		memcpy(oom->owners, former->owners, sizeof(oom->owners));
		oom->owner_count = former->owner_count;
		oom->place_rise = former->place_rise;
		oom->surge = former->surge;
	} else if (!former->time_ns || sl_ledger_may_look(model, model->sites.count + 3 * model->tracks.count)) {
		take_owners(model, oom);
		if (oom->device >= 0)
			take_surge(model, oom, place);
	}
	model->oom_event = model->events;
}

static bool may_look_at_cache(struct sl_model *model)
{
	return model->ooms_total <= CACHES_FREE || sl_ledger_may_look(model, model->pointers.count + model->blocks.count);
}

/* Texts attached to the thread's open ranges, innermost first. */
static unsigned labels_pairs(const struct sl_model *model, uint32_t thread, uint32_t pairs[SL_PAIRS_MAX])
{
	const struct sl_thread_state *state = thread < model->threads.count ? model->threads.item[thread] : NULL;
	unsigned count = 0;

	for (size_t i = state ? state->ranges.count : 0; i--;)
		for (unsigned k = 0; k < state->ranges.item[i].pair_count && count < SL_PAIRS_MAX; k++)
			pairs[count++] = state->ranges.item[i].pairs[k];
	return count;
}

static void add(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	int device = (int)event->device;
	enum sl_scope scope = take_inner(model, item, &device);
	struct sl_oom former = {.time_ns = 0}, *oom; /* former: the one that this one replaces; time_ns 0: none */
	const struct sl_track *place;

	if (++model->ooms_total > SL_OOMS_MAX) { /* the last one is the one that ended the program */
		oom = &model->ooms.item[--model->ooms.count];
		former = *oom;
		sl_ledger_thread(model, oom->thread)->pending -= oom->recovered < 0 && !oom->less_bytes;
	}
	SL_ROOM(&model->ooms);
	oom = &model->ooms.item[model->ooms.count];
	*oom = (struct sl_oom){
		.time_ns = event->time_ns,
		.requested_bytes = event->bytes,
		.asked_bytes = event->bytes,
		.free_bytes = SL_UNKNOWN,
		.total_bytes = SL_UNKNOWN,
		.code = event->result,
		.thread = item->thread,
		.stack = sl_stack_of(event),
		.label = (uint32_t)event->label,
		.stream = event->stream,
		.api = (uint16_t)event->api,
		.scope = scope,
		.nested = event->flags & SL_FLAG_nested,
		.in_units = event->kind == SL_KIND_device && !(event->flags & SL_FLAG_injected),
		.recovered = -1,
		.injected = event->flags & SL_FLAG_injected,
		.group = (uint32_t)model->ooms.count,
		.largest_cached = SL_UNKNOWN,
		.contexts = model->objects[0].count, /* of SL_OBJECT_CONTEXT */
	};
	oom->step = sl_labels_instant(model, item->thread).step;
	oom->pair_count = labels_pairs(model, item->thread, oom->pairs);
	oom->device = oom->scope == SL_SCOPE_HOST ? -1 : device;
	oom->live_bytes = live_bytes(model, oom);
	if (model->ooms.count && model->ooms.item[model->ooms.count - 1].in_retry &&
	    retried_same(&model->ooms.item[model->ooms.count - 1], item))
		oom->group = model->ooms.item[model->ooms.count - 1].group;
	place = sl_tracks_place(model, item);
	take_place(model, oom, item, place);
	take_pool(model, oom, event);
	take_holders(model, oom, &former, place);
	if (oom->device >= 0) {
		oom->torch = sl_ledger_device(model, oom->device)->torch;
		if (oom->torch.used && !model->moments.at_oom.time_ns)
			sl_moments_segments(model, oom->device, &model->moments.at_oom);
		if (oom->torch.used && may_look_at_cache(model))
			oom->largest_cached = sl_torch_largest_cached(model, oom->device);
		sl_sample_wait_change(model, sl_ledger_device(model, oom->device), 0);
		sl_samples_neighbours(oom, sl_ledger_device(model, oom->device));
		oom->rounded = sl_ledger_device(model, oom->device)->rounded;
		oom->device_rise = surge_of(&sl_ledger_device(model, oom->device)->swing,
					    sl_ledger_device(model, oom->device)->swing.high + oom->asked_bytes);
		take_changes(model, oom, sl_ledger_device(model, oom->device), &former);
	}
	model->ooms.count++;
	sl_ledger_thread(model, item->thread)->pending++;
}

static bool is_allocation(enum sl_verb verb)
{
	return verb == SL_VERB_ALLOC || verb == SL_VERB_GRAPH_ALLOC || verb == SL_VERB_RESERVE || verb == SL_VERB_MAP;
}

void sl_ooms_check(struct sl_model *model, const struct sl_item *item, bool failed)
{
	if (is_allocation(item->hook->verb))
		settle_retried(model, item, failed);
	if (!failed && model->ooms.count && item->hook->verb == SL_VERB_ALLOC)
		look_retried(model, item);
	if (failed && item->hook->oom && item->event->result == item->hook->oom) {
		sl_tracks_asked(&model->tracks);
		add(model, item);
	}
}

/* Uses the free memory at an error like a sample of the device. */
static void note_used(struct sl_model *model, const struct sl_oom_context *context)
{
	struct sl_device_state *device;

	if (context->free_bytes == SL_UNKNOWN || context->total_bytes == SL_UNKNOWN || context->device < 0 ||
	    context->free_bytes > context->total_bytes)
		return;
	device = sl_ledger_device(model, context->device);
	if (device->used_peak_bytes != SL_UNKNOWN && context->total_bytes - context->free_bytes > device->used_peak_bytes)
		device->used_peak_bytes = context->total_bytes - context->free_bytes;
}

void sl_ooms_context(struct sl_model *model, const struct sl_oom_context *context)
{
	for (size_t i = model->ooms.count; i--;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->thread != context->thread || oom->time_ns > context->time_ns || oom->context.time_ns)
			continue;
		oom->context = *context;
		oom->free_bytes = context->free_bytes;
		oom->total_bytes = context->total_bytes;
		note_used(model, context);
		if (oom->device < 0 && oom->scope != SL_SCOPE_HOST && context->device < SL_DEVICES_MAX)
			oom->device = (int)context->device;
		return;
	}
}

/* True: a page of PyTorch's segment.  A segment has many pages: the retry may work for this page and fail for a later one. */
static bool is_page(const struct sl_model *model, const struct sl_oom *oom)
{
	const struct sl_hook *hook = sl_header_hook(model->header, oom->api);

	return hook && hook->kind == SL_KIND_vmm;
}

/* XLA's pool refused by its own limit, of which the event tells, with the most that was in use. */
static void take_framework(struct sl_oom *oom, const struct sl_event *event)
{
	oom->of_framework = true;
	if (event->extra2 < event->extra)
		return;
	oom->total_bytes = event->extra2;
	oom->free_bytes = event->extra2 - event->extra;
}

/*
 * PyTorch gives up: its failed attempts since the last success on this thread are one error, from which it did not recover.  Where
 * no call failed, its own limit refused, or a snapshot tells of it.
 */
void sl_ooms_torch(struct sl_model *model, const struct sl_item *item)
{
	struct sl_thread_state *state = sl_ledger_thread(model, item->thread);
	uint32_t group = UINT32_MAX, thread = item->thread;
	int device = (int)item->event->device;
	uint64_t bytes = item->event->bytes;
	uint32_t tensor = sl_tensors_take(model, thread);

	for (size_t i = model->ooms.count; i--;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->thread != thread || oom->scope != SL_SCOPE_VRAM || oom->time_ns <= state->last_block_ns ||
		    (oom->recovered == 1 && !is_page(model, oom)))
			continue;
		if (oom->device >= 0 && device >= 0 && oom->device != device)
			continue;
		if (oom->recovered < 0 && !oom->less_bytes && state->pending)
			state->pending--;
		oom->recovered = 0;
		oom->reported_by_torch = true;
		oom->tensor = tensor;
		if (bytes > oom->asked_bytes)
			oom->asked_bytes = bytes;
		group = oom->group < group ? oom->group : group;
	}
	for (size_t i = model->ooms.count; group != UINT32_MAX && i--;)
		if (model->ooms.item[i].reported_by_torch && model->ooms.item[i].thread == thread &&
		    model->ooms.item[i].time_ns > state->last_block_ns)
			model->ooms.item[i].group = group;
	if (group == UINT32_MAX) {
		sl_tracks_asked(&model->tracks);
		add(model, item);
		model->ooms.item[model->ooms.count - 1].recovered = 0;
		model->ooms.item[model->ooms.count - 1].reported_by_torch = true;
		model->ooms.item[model->ooms.count - 1].tensor = tensor;
		if (item->hook->family == SL_FAMILY_pool)
			take_framework(&model->ooms.item[model->ooms.count - 1], item->event);
		state->pending--;
	}
	state->last_block_ns = model->now_ns;
}
