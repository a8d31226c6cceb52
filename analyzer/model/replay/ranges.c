/* SPDX-License-Identifier: MIT */
/*
 * Single ranges, at most SL_PHASES_MAX. While there are few, all are kept; then every second of each label, every fourth and so
 * on.  The first of a label always stays, so that two labels that alternate are both kept.
 */

#include "analyzer/model/replay/replay.h"

struct sl_possession sl_ranges_held(const struct sl_model *model)
{
	for (int d = 0; d < SL_DEVICES_MAX; d++) {
		const struct sl_device_state *device = model->devices[d + 1];
		uint64_t unused = 0;

		if (!device || !device->used)
			continue;
		sl_model_unused(&device->torch, &unused);
		return (struct sl_possession){d, device->known, unused};
	}
	return (struct sl_possession){-1, 0, 0};
}

uint64_t sl_ranges_step(const struct sl_model *model, const struct sl_open_range *range)
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
	size_t kept = 0;

	if (model->phases_level == 63) /* only the first of each label is left, and there are more labels than room */
		return;
	model->phases_level++;
	for (size_t i = 0; i < model->phases.count; i++)
		if (stays(model, model->phases.item[i].number))
			model->phases.item[kept++] = model->phases.item[i];
	model->phases.count = kept;
}

static void keep(struct sl_model *model, const struct sl_thread_state *state, size_t at, uint32_t thread, bool open)
{
	const struct sl_open_range *range = &state->ranges.item[at];
	struct sl_phase phase = {
		.label = range->label,
		.thread = thread,
		.step = sl_ranges_step(model, range),
		.number = model->labels.item[range->label].entries,
		.serial = range->serial,
		.begin_ns = range->begin_ns,
		.end_ns = open ? 0 : model->now_ns,
		.begin_order = range->begin_order,
		.end_order = model->boundaries,
		.before = range->possession,
		.after = sl_ranges_held(model),
		.overlaps = thread == 0 || (!open && at + 1 < state->ranges.count),
		.depth = thread ? (unsigned)at : 0,
		.pair_count = range->pair_count,
	};

	memcpy(phase.pairs, range->pairs, sizeof(phase.pairs));
	if (phase.depth) {
		phase.outer = sl_arena_alloc(&model->arena, phase.depth * sizeof(*phase.outer));
		for (unsigned i = 0; i < phase.depth; i++)
			phase.outer[i] =
				(struct sl_outer){state->ranges.item[i].label, sl_ranges_step(model, &state->ranges.item[i]),
						  state->ranges.item[i].serial};
	}
	*SL_PUSH(&model->phases) = phase;
}

void sl_ranges_keep(struct sl_model *model, const struct sl_thread_state *state, size_t at, uint32_t thread, bool open)
{
	uint64_t number = model->labels.item[state->ranges.item[at].label].entries;

	model->boundaries++;
	model->phases_seen++;
	if (stays(model, number) && model->phases.count == SL_PHASES_MAX)
		thin(model);
	if (stays(model, number) && model->phases.count < SL_PHASES_MAX)
		keep(model, state, at, thread, open);
}
