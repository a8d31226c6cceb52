/* SPDX-License-Identifier: MIT */
/*
 * Finds places that free what they made in one round only after they have made the next round's (state/parts.h, turns), so that
 * the peak holds both: results that a variable keeps until it gets the new ones.
 */
#include <stdlib.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/report.h"

/* Mean bytes of one round: at most two of them lived at once. */
static uint64_t round_of(const struct sl_track *track)
{
	return sl_stats_bytes((double)track->born_bytes / (double)track->births * track->most_blocks / 2);
}

/*
 * Bytes at the device's peak that the previous round had made, at all places.  *largest_track: the place with most of
 * them.  *about: the figure is an estimate, because more than two mean rounds lived at the peak.  The last two were larger then,
 * and each made about half, since the rounds of a turn are about equal.
 */
static uint64_t old_at_peak(const struct sl_model *model, int device, const struct sl_track **largest_track, unsigned *places,
			    bool *about)
{
	uint64_t *at_peak = sl_model_tracks_at_peak(model, device), all = 0, largest = 0;

	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		uint64_t round, old;

		if (track->turns < SL_FEW)
			continue;
		round = round_of(track);
		old = at_peak[i] > round ? at_peak[i] - round : 0;
		if (!old)
			continue;
		if ((double)old > (1 + SL_ALIKE) * (double)round) {
			old = at_peak[i] / 2;
			*about = true;
		} else if (old > round) {
			old = round;
		}
		all += old;
		++*places;
		if (old > largest) {
			largest = old;
			*largest_track = track;
		}
	}
	free(at_peak);
	return all;
}

/* count: how often it was seen; of: lines that do so; other: the peak without. */
static void find_on_device(struct sl_report *report, unsigned index, const struct sl_device_state *device)
{
	const struct sl_track *largest_track = NULL;
	unsigned places = 0;
	bool about = false;
	uint64_t old = old_at_peak(report->processes[index].model, device->device, &largest_track, &places, &about);

	if (!largest_track || old > device->known_peak || (double)old < SL_QUARTER * (double)device->known_peak)
		return;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_memory_overlap,
						    .severity = "info",
						    .class = "overlap",
						    .process = (int)index,
						    .device = device->device,
						    .bytes = old,
						    .stack = largest_track->stack,
						    .count = largest_track->turns,
						    .of = places,
						    .other = device->known_peak - old,
						    .about = about});
}

const struct sl_analysis sl_analysis_overlap = {.name = "overlap", .find_on_device = find_on_device};
