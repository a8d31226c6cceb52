/* SPDX-License-Identifier: MIT */
/*
 * Finds a step that held much more than all others and then gave it back, so that it alone made the program's peak.  The
 * finding names the place with the largest part of the difference to other steps (state/parts.h).
 */
#include <stdlib.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/amounts.h"
#include "analyzer/report/report.h"

#define RISES_MIN 10

/*
 * What each track held at the device's peak beyond its own second highest swing; returns the track with the most.  A segment that
 * PyTorch keeps is not what rose: its tensors are.
 */
static const struct sl_track *place_of(const struct sl_model *model, int device, uint64_t *held_bytes, uint64_t *beyond)
{
	uint64_t *at_peak = sl_model_tracks_at_peak(model, device);
	const struct sl_track *found = NULL;

	*beyond = 0;
	for (size_t i = 0; i < model->tracks.count; i++) {
		uint64_t usual = model->tracks.item[i].usual_bytes;

		if (model->devices[device + 1]->torch.used && model->tracks.item[i].kind != SL_KIND_block &&
		    2 * model->tracks.item[i].live_bytes > at_peak[i])
			continue;
		if (at_peak[i] <= usual || at_peak[i] - usual <= *beyond)
			continue;
		*beyond = at_peak[i] - usual;
		*held_bytes = at_peak[i];
		found = &model->tracks.item[i];
	}
	free(at_peak);
	return found;
}

/* True: the run lies mostly below the highest of all other rises, so the highest one was given back. */
static bool is_short(const struct sl_line *line, uint64_t second)
{
	uint32_t above = 0;

	for (uint32_t i = line->first; i <= line->bin; i++)
		above += line->bins[i].min > second;
	return above <= SL_QUARTER * (line->bin + 1 - line->first);
}

/* other: what the place held of it. */
static void find_on_device(struct sl_report *report, unsigned index, const struct sl_device_state *device)
{
	struct sl_process *process = &report->processes[index];
	const struct sl_swing *swing = &device->swing;
	uint64_t held_bytes, beyond, second = swing->second;
	/* what PyTorch keeps unused of the rise is not in use any more */
	const struct sl_line *line = device->torch.used ? device->torch.allocated : device->line;
	const struct sl_track *track;

	if (swing->count < RISES_MIN || !second || (double)swing->highest < SL_MOST_OF * (double)device->known_peak ||
	    swing->highest < 2 * second || !line || !line->begun || !is_short(line, second))
		return;
	track = place_of(process->model, device->device, &held_bytes, &beyond);
	if (!track || (double)beyond < SL_THIRD * (double)(swing->highest - second))
		return;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_memory_spike,
						    .severity = "info",
						    .class = "spike",
						    .process = (int)index,
						    .device = device->device,
						    .unix_ns = sl_process_unix(process, swing->highest_ns),
						    .bytes = swing->highest,
						    .stack = track->stack,
						    .other = held_bytes});
}

const struct sl_analysis sl_analysis_spikes = {.name = "spikes", .find_on_device = find_on_device};
