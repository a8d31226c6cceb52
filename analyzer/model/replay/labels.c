/* SPDX-License-Identifier: MIT */
/* Ranges: the changes of memory between their begin and their end, kept per label (the agent replaces digits in labels by '#'). */
#include "analyzer/base/search.h"

#include "analyzer/model/counts/between.h"
#include "analyzer/model/counts/moments.h"
#include "analyzer/model/replay/replay.h"

/*
 * Single ranges, at most SL_PHASES_MAX. While there are few, all are kept; then every second of each label, every fourth and so
 * on.  The first of a label always stays, so that two labels that alternate are both kept.
 */

static struct sl_possession ranges_held(const struct sl_model *model)
{
	for (int d = 0; d < SL_DEVICES_MAX; d++) {
		const struct sl_device_state *device = model->devices[d + 1];
		uint64_t unused = 0;

		if (!device || !device->used)
			continue;
		sl_model_unused(&device->torch, &unused);
		return (struct sl_possession){d, device->known_bytes, unused};
	}
	return (struct sl_possession){-1, 0, 0};
}

/* The number of the entry; SL_UNKNOWN where its label has none. */
static uint64_t ranges_step(const struct sl_model *model, const struct sl_open_range *range)
{
	const char *text = sl_defs_text(model->defs, model->labels.item[range->label].text);

	return text && strchr(text, '#') ? range->step : SL_UNKNOWN;
}

static bool stays(const struct sl_model *model, uint64_t number)
{
	return !(number & ((1ull << model->phases_level) - 1));
}

static void thin(struct sl_model *model)
{
	size_t kept_count = 0;

	if (model->phases_level == 63) /* only the first of each label is left, and there are more labels than room */
		return;
	model->phases_level++;
	for (size_t i = 0; i < model->phases.count; i++)
		if (stays(model, model->phases.item[i].number))
			model->phases.item[kept_count++] = model->phases.item[i];
	model->phases.count = kept_count;
}

static void keep(struct sl_model *model, const struct sl_thread_state *state, size_t at, uint32_t thread, bool open)
{
	const struct sl_open_range *range = &state->ranges.item[at];
	struct sl_phase phase = {
		.label = range->label,
		.thread = thread,
		.step = ranges_step(model, range),
		.number = model->labels.item[range->label].entries,
		.serial = range->serial,
		.begin_ns = range->begin_ns,
		.end_ns = open ? 0 : model->now_ns,
		.begin_order = range->begin_order,
		.end_order = model->boundaries,
		.before = range->possession,
		.after = ranges_held(model),
		.overlaps = thread == 0 || (!open && at + 1 < state->ranges.count),
		.depth = thread ? (unsigned)at : 0,
		.pair_count = range->pair_count,
	};

	memcpy(phase.pairs, range->pairs, sizeof(phase.pairs));
	if (phase.depth) {
		phase.outer = sl_arena_alloc(&model->arena, phase.depth * sizeof(*phase.outer));
		for (unsigned i = 0; i < phase.depth; i++)
			phase.outer[i] = (struct sl_outer){state->ranges.item[i].label, ranges_step(model, &state->ranges.item[i]),
							   state->ranges.item[i].serial};
	}
	*SL_PUSH(&model->phases) = phase;
}

/* The range at index `at` of its thread ends now, or is still open at the end. */
static void keep_ranges(struct sl_model *model, const struct sl_thread_state *state, size_t at, uint32_t thread, bool open)
{
	uint64_t number = model->labels.item[state->ranges.item[at].label].entries;

	model->boundaries++;
	model->phases_seen++;
	if (stays(model, number) && model->phases.count == SL_PHASES_MAX)
		thin(model);
	if (stays(model, number) && model->phases.count < SL_PHASES_MAX)
		keep(model, state, at, thread, open);
}

static uint32_t label_of(struct sl_model *model, uint64_t text)
{
	uint32_t index = sl_idmap_claim(&model->label_ids, text, model->labels.count);

	if (index == model->labels.count)
		*SL_PUSH(&model->labels) = (struct sl_label){.text = (uint32_t)text};
	return index;
}

static void add_crest(struct sl_crests *crests, uint64_t order, int64_t value)
{
	while (crests->count && crests->item[crests->count - 1].value <= value)
		crests->count--;
	*SL_PUSH(crests) = (struct sl_crest){order, value};
}

/* The maximum since the boundary with this number; at least `floor`. */
static int64_t crest_since(const struct sl_crests *crests, uint64_t order, int64_t floor)
{
	size_t first = SL_FIRST(i, crests->count, crests->item[i].order > order);

	return first < crests->count && crests->item[first].value > floor ? crests->item[first].value : floor;
}

/* The maximum since the last boundary belongs to every open range, which asks when it ends. */
static void fold_peak(struct sl_model *model)
{
	add_crest(&model->in_use_crests, model->boundaries, model->in_use_max);
	add_crest(&model->held_crests, model->boundaries, model->held_max);
	model->in_use_max = model->in_use;
	model->held_max = model->held_bytes;
	model->in_use_max_before = -1;
}

static void raise_peaks(struct sl_open_range *range, const struct sl_model *model)
{
	range->peak = crest_since(&model->in_use_crests, range->begin_order, range->peak);
	range->held_peak = crest_since(&model->held_crests, range->begin_order, range->held_peak);
}

static uint64_t not_negative(int64_t value)
{
	return value < 0 ? 0 : (uint64_t)value;
}

/* Notes the number of a label in which the agent replaced digits by '#'. */
static void note_step(struct sl_model *model, const struct sl_item *item)
{
	int64_t step = sl_item_step(item, model->defs);

	if (step >= 0)
		sl_moments_step(&model->labels.item[label_of(model, item->event->label)].steps, model->now_ns, (uint64_t)step);
}

/* Drops the oldest open range.  A program may never close its ranges, and the end of one searches all of its thread. */
static void forget_oldest(struct sl_model *model, struct sl_thread_state *state)
{
	if (state->ranges.count < SL_OPEN_RANGES_MAX)
		return;
	for (size_t i = 0; i < SL_OPEN_RANGES_MAX / 2; i++) {
		model->labels.item[state->ranges.item[i].label].now--;
		sl_model_range_allocs_drop(&state->ranges.item[i].making);
	}
	state->ranges.count = SL_OPEN_RANGES_MAX / 2;
	memmove(state->ranges.item, state->ranges.item + SL_OPEN_RANGES_MAX / 2, state->ranges.count * sizeof(*state->ranges.item));
}

/* "step_#", "backward_#": its entries are the program's own steps. */
static bool is_numbered(const char *text)
{
	return text && strchr(text, '#') && strncmp(text, "TSL:", 4) != 0;
}

/* Called when an entry of a range begins: notes it if it is sought. step: its number, -1: none. */
static void note_sought(struct sl_model *model, const struct sl_event *event, int64_t step)
{
	const char *label = sl_defs_text(model->defs, event->label);

	for (unsigned i = 0; label && i < SL_COUNT(model->sought); i++) {
		struct sl_sought *sought = &model->sought[i];

		if (!sought->label || strncmp(label, sought->label, sought->size) != 0)
			continue;
		if (!label[sought->size]) {
			if (++sought->seen == sought->number)
				sought->nth_ns = model->now_ns;
		} else if (!strcmp(label + sought->size, "#")) { /* the agent's "step_#" of step_3 */
			sought->numbered++;
			if (step >= 0 && (uint64_t)step == sought->number && !sought->of_number_ns)
				sought->of_number_ns = model->now_ns;
		}
	}
}

/* Notes that the thread opened its first range (1) or closed its last one (-1). */
static void count_ranged(struct sl_model *model, const struct sl_thread_state *state, int by)
{
	model->in_ranges += (uint64_t)by;
	if (!state->index)
		return;
	model->ranged += (uint64_t)by;
	model->ranged_sum += (uint64_t)(by * (int64_t)state->index);
}

static void begin(struct sl_model *model, uint32_t thread, const struct sl_item *item, uint64_t id)
{
	const struct sl_event *event = item->event;
	struct sl_thread_state *state = sl_ledger_thread(model, thread);

	fold_peak(model);
	forget_oldest(model, state);
	if (!state->ranges.count) {
		count_ranged(model, state, 1);
		model->tracks.passes += is_numbered(sl_defs_text(model->defs, event->label));
	}
	note_sought(model, event, sl_item_step(item, model->defs));
	*SL_PUSH(&state->ranges) = (struct sl_open_range){
		.label = label_of(model, event->label),
		.id = id,
		.step = id ? (uint64_t)sl_item_step(item, model->defs) : event->extra,
		.begin_ns = model->now_ns,
		.before = not_negative(model->in_use),
		.peak = model->in_use,
		.held_before = model->held_bytes,
		.held_peak = model->held_bytes,
		.turnover = state->turnover,
		.counted = state->turnover,
		.counted_ns = model->now_ns,
		.by_torch = model->torch_seen,
		.communicator = event->address,
		.message_bytes = event->bytes,
		.serial = ++model->ranges_begun,
		.begin_order = model->boundaries++,
		.possession = ranges_held(model),
	};
	model->labels.item[state->ranges.item[state->ranges.count - 1].label].now++;
}

static void add_to_floor(struct sl_floor *floor, uint64_t value)
{
	uint64_t *least = floor->least;

	if (floor->count == SL_FLOOR_PIECES && floor->filled == floor->each) {
		for (unsigned i = 0; i < SL_FLOOR_PIECES / 2; i++)
			least[i] = least[2 * i] < least[2 * i + 1] ? least[2 * i] : least[2 * i + 1];
		floor->count /= 2;
		floor->filled = floor->each *= 2;
	}
	if (!floor->count || floor->filled == floor->each) {
		floor->each = floor->each ? floor->each : 1;
		floor->filled = 0;
		least[floor->count++] = UINT64_MAX;
	}
	floor->filled++;
	least[floor->count - 1] = value < least[floor->count - 1] ? value : least[floor->count - 1];
}

/*
 * Growth: regression of the bytes in use at the end of an entry over the entry's number.  The first two entries fill caches and
 * are left out; an entry inside another of the label is a part of that.
 */
static void add_point(struct sl_label *label, uint64_t bytes)
{
	size_t open = label->now < SL_POINT_GROUPS_MAX ? label->now : SL_POINT_GROUPS_MAX - 1;
	struct sl_point_group *group;
	double dx, dy, weight;

	if (label->outermost <= 2)
		return;
	while (label->groups.count <= open)
		*SL_PUSH(&label->groups) = (struct sl_point_group){0};
	group = &label->groups.item[open];
	dx = (double)label->outermost - group->x;
	dy = (double)bytes - group->y;
	weight = (double)group->points / (double)(group->points + 1);
	label->points++;
	group->points++;
	group->x += dx / (double)group->points;
	group->y += dy / (double)group->points;
	label->xx += weight * dx * dx;
	label->xy += weight * dx * dy;
	label->yy += weight * dy * dy;
	add_to_floor(&label->floor, bytes);
}

static void take_mark(const struct sl_model *model, struct sl_entry_mark *mark, uint64_t entry)
{
	while (mark->capacity < model->sites.count)
		mark->bytes = sl_arena_grow(mark->bytes, &mark->capacity, mark->capacity, sizeof(*mark->bytes));
	mark->entry = entry;
	mark->count = model->sites.count;
	for (size_t i = 0; i < mark->count; i++)
		mark->bytes[i] = model->sites.item[i].live_bytes;
}

/* Marks the first entry that has a point, then entries at growing distances, so that the last mark is near the end of any run. */
static void mark_entry(const struct sl_model *model, struct sl_label *label)
{
	if (label - model->labels.item >= SL_LABELLED_MAX || label->outermost <= 2)
		return;
	if (!label->early.entry)
		take_mark(model, &label->early, label->outermost);
	else if (label->outermost >= label->late.entry + 1 + label->late.entry / 8)
		take_mark(model, &label->late, label->outermost);
}

/* True for an entry in which the device ran out for good: it ended early, with memory that the exception had not freed yet. */
static bool was_cut_short(const struct sl_model *model, const struct sl_open_range *range, uint32_t thread)
{
	for (size_t i = model->ooms.count; i-- && model->ooms.item[i].time_ns >= range->begin_ns;)
		if (!sl_oom_got_over(&model->ooms.item[i]) && (!thread || model->ooms.item[i].thread == thread))
			return true;
	return false;
}

/* What happens in a nested range of the same label has happened in the outer one too. */
static bool is_inside_itself(const struct sl_thread_state *state, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (state->ranges.item[i].label == state->ranges.item[at].label)
			return true;
	return false;
}

/* Ranges of one label may overlap (nvtxRangeStart).  When one ends, the next open one counts from then on. */
static void hand_over(const struct sl_model *model, struct sl_thread_state *state, size_t at)
{
	for (size_t i = at + 1; i < state->ranges.count; i++)
		if (state->ranges.item[i].label == state->ranges.item[at].label) {
			state->ranges.item[i].counted = state->turnover;
			state->ranges.item[i].counted_ns = model->now_ns;
			return;
		}
}

static void count_in_label(struct sl_label *label, const struct sl_model *model, const struct sl_thread_state *state,
			   const struct sl_open_range *range)
{
	bool same = range->by_torch == model->torch_seen; /* otherwise the counters began anew inside the range */
	const struct sl_turnover *now = &state->turnover, *then = same ? &range->counted : &(struct sl_turnover){0};

	label->duration_ns += model->now_ns - range->counted_ns;
	label->allocated_bytes += now->made_bytes - then->made_bytes;
	label->blocks_created += now->made_blocks - then->made_blocks;
	label->freed_bytes += now->gone_bytes - then->gone_bytes;
	label->blocks_freed += now->gone_blocks - then->gone_blocks;
}

static struct sl_entry entry_of(const struct sl_model *model, const struct sl_thread_state *state,
				const struct sl_open_range *range, uint32_t thread)
{
	bool same = range->by_torch == model->torch_seen; /* otherwise the counters began anew inside the range */
	const struct sl_turnover *now = &state->turnover, *then = same ? &range->turnover : &(struct sl_turnover){0};
	struct sl_entry entry = {
		.label = range->label,
		.thread = thread,
		.step = range->step,
		.begin_ns = range->begin_ns,
		.end_ns = model->now_ns,
		.before = range->before,
		.after = not_negative(model->in_use),
		.peak = not_negative(range->peak),
		.held_before = not_negative(range->held_before),
		.held_after = not_negative(model->held_bytes),
		.held_peak = not_negative(range->held_peak),
		.made_bytes = now->made_bytes - then->made_bytes,
		.made_blocks = now->made_blocks - then->made_blocks,
		.gone_bytes = now->gone_bytes - then->gone_bytes,
		.gone_blocks = now->gone_blocks - then->gone_blocks,
		.pair_count = range->pair_count,
		.made = range->making.made.item,
		.made_count = range->making.made.count,
	};

	memcpy(entry.pairs, range->pairs, sizeof(entry.pairs));
	return entry;
}

/* Adds the figures of an entry to each pair attached to it. */
static void count_said(struct sl_model *model, const struct sl_entry *entry)
{
	for (unsigned i = 0; i < entry->pair_count; i++) {
		uint64_t key = (uint64_t)entry->label << 32 | entry->pairs[i];
		uint32_t at = sl_idmap_get(&model->paired_ids, key, UINT32_MAX);
		struct sl_paired *paired;

		if (at == UINT32_MAX && model->paired.count == SL_PAIRED_MAX)
			continue;
		if (at == UINT32_MAX) {
			at = (uint32_t)model->paired.count;
			sl_idmap_set(&model->paired_ids, key, at);
			*SL_PUSH(&model->paired) = (struct sl_paired){.label = entry->label, .text = entry->pairs[i]};
		}
		paired = &model->paired.item[at];
		paired->entries++;
		paired->duration_ns += entry->end_ns - entry->begin_ns;
		paired->allocated_bytes += entry->made_bytes;
		if (entry->peak > paired->peak_bytes)
			paired->peak_bytes = entry->peak;
	}
}

static void end(struct sl_model *model, struct sl_thread_state *state, size_t at, uint32_t thread)
{
	struct sl_open_range range;
	struct sl_label *label;
	struct sl_entry entry;
	bool inside = is_inside_itself(state, at), part;

	fold_peak(model);
	range = state->ranges.item[at];
	part = inside && !range.id; /* ranges that other threads started meanwhile are no part of it */
	raise_peaks(&range, model);
	label = &model->labels.item[range.label];
	label->now--;
	if (!label->entries) {
		label->before_bytes = range.before;
		label->first_ns = range.begin_ns;
	}
	keep_ranges(model, state, at, thread, false);
	label->entries++;
	label->last_ns = model->now_ns;
	label->after_bytes = not_negative(model->in_use);
	if (not_negative(range.peak) > label->peak_bytes)
		label->peak_bytes = not_negative(range.peak);
	entry = entry_of(model, state, &range, thread);
	if (!part) {
		label->outermost++;
		label->net_bytes += (int64_t)label->after_bytes - (int64_t)range.before;
	}
	if (!inside) {
		count_said(model, &entry);
		count_in_label(label, model, state, &range);
		hand_over(model, state, at);
	}
	if (model->entry)
		model->entry(model->entry_context, model, &entry);
	sl_model_range_allocs_drop(&range.making);
	if (!part && !was_cut_short(model, &range, thread)) {
		add_point(label, label->after_bytes);
		mark_entry(model, label);
	}
	sl_collectives_range(model, &range, thread);
	for (size_t i = at + 1; i < state->ranges.count; i++)
		state->ranges.item[i - 1] = state->ranges.item[i];
	state->ranges.count--;
	if (!state->ranges.count)
		count_ranged(model, state, -1);
}

/*
 * The range that a pop closes: the innermost with the same label and index, since ranges of several domains and backward passes
 * need not be nested.  A pop without a label closes the innermost. ranges.count: the begin was not recorded.
 */
static size_t closed_by(struct sl_model *model, const struct sl_thread_state *state, const struct sl_event *event)
{
	uint32_t label = sl_idmap_get(&model->label_ids, event->label, UINT32_MAX);

	for (size_t i = state->ranges.count; i--;)
		if (!event->label || (state->ranges.item[i].label == label && state->ranges.item[i].step == event->extra))
			return i;
	return SIZE_MAX;
}

static void add_pair(struct sl_open_range *range, uint32_t text)
{
	if (range->pair_count < SL_PAIRS_MAX)
		range->pairs[range->pair_count++] = text;
}

void sl_labels_apply(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct sl_thread_state *state;
	size_t at;

	switch (item->hook->verb) {
	case SL_VERB_PAIR:
		state = sl_ledger_thread(model, item->thread);
		if (state->ranges.count)
			add_pair(&state->ranges.item[state->ranges.count - 1], (uint32_t)event->label);
		break;
	case SL_VERB_RANGE_PUSH:
		begin(model, item->thread, item, 0);
		note_step(model, item);
		break;
	case SL_VERB_RANGE_POP: /* the program popped once too often */
		state = sl_ledger_thread(model, item->thread);
		at = closed_by(model, state, event);
		if (at != SIZE_MAX)
			end(model, state, at, item->thread);
		break;
	case SL_VERB_RANGE_START: /* extra is the range's id */
		begin(model, 0, item, event->extra);
		note_step(model, item);
		break;
	default:
		state = sl_ledger_thread(model, 0);
		for (size_t i = state->ranges.count; i--;)
			if (state->ranges.item[i].id == event->extra) {
				end(model, state, i, 0);
				break;
			}
	}
}

struct sl_instant sl_labels_instant(const struct sl_model *model, uint32_t thread)
{
	struct sl_instant moment = {.time_ns = model->now_ns, .step = SL_UNKNOWN};

	for (size_t t = thread; t < model->threads.count && !moment.label && (t == thread || (!thread && model->ranged)); t++) {
		const struct sl_thread_state *state = model->threads.item[t];

		if (!state || !state->ranges.count)
			continue;
		moment.label = model->labels.item[state->ranges.item[0].label].text;
		moment.step = ranges_step(model, &state->ranges.item[0]);
	}
	return moment;
}

static void tell_open(const struct sl_model *model, const struct sl_thread_state *state, const struct sl_open_range *range,
		      uint32_t thread)
{
	struct sl_entry entry = entry_of(model, state, range, thread);

	entry.end_ns = 0;
	entry.after = entry.held_after = SL_UNKNOWN;
	if (model->entry)
		model->entry(model->entry_context, model, &entry);
}

void sl_labels_finish(struct sl_model *model)
{
	fold_peak(model); /* ranges still open do not count as entries: they have no end */
	for (size_t t = 0; t < model->threads.count; t++)
		for (size_t i = 0; model->threads.item[t] && i < model->threads.item[t]->ranges.count; i++) {
			model->labels.item[model->threads.item[t]->ranges.item[i].label].open++;
			raise_peaks(&model->threads.item[t]->ranges.item[i], model);
			tell_open(model, model->threads.item[t], &model->threads.item[t]->ranges.item[i], (uint32_t)t);
			keep_ranges(model, model->threads.item[t], i, (uint32_t)t, true);
		}
}

/* True: XLA's own range, "TSL:Thunk command_buffer_#", which is no step of the program. */
static bool is_internal(const char *text)
{
	return text && !strncmp(text, "TSL:", 4);
}

const struct sl_label *sl_model_steps(const struct sl_model *model)
{
	const struct sl_label *best = NULL;

	for (size_t i = 0; i < model->labels.count; i++) {
		const struct sl_label *label = &model->labels.item[i];

		if (label->steps.count > 1 && !is_internal(sl_defs_text(model->defs, label->text)) &&
		    (!best || label->duration_ns > best->duration_ns))
			best = label;
	}
	return best;
}

uint64_t sl_model_step_at(const struct sl_label *label, uint64_t ns)
{
	const struct sl_step *step = label->steps.item;
	uint32_t later = (uint32_t)SL_FIRST(i, label->steps.count, step[i].time_ns > ns);
	double part = 0; /* progress within the present stride, as a fraction */

	if (!later)
		return 0;
	if (later < label->steps.count && step[later].time_ns > step[later - 1].time_ns)
		part = (double)(ns - step[later - 1].time_ns) / (double)(step[later].time_ns - step[later - 1].time_ns);
	return (uint64_t)((later - 1 + part) * label->steps.stride) + 1;
}
