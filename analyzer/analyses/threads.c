/* SPDX-License-Identifier: MIT */
/*
 * Threads that all work on one device although the process sees as many devices as it has such threads.  A thread begins on device
 * 0 and stays there until it sets another one itself.  They are alike if they allocate at one place.  Each was to have a device if
 * another device was set, or if blocks for each are most of what the device holds, as replicas are.  It is a note: threads may well
 * share a device on purpose.
 */
#include <stdlib.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/report.h"

/* The only device that the process asked for memory; -1: several, or none. */
static int only_device(const struct sl_model *model)
{
	int found = -1;

	for (int d = 0; d < SL_DEVICES_MAX; d++) {
		if (!model->devices[d + 1] || !model->devices[d + 1]->known_peak)
			continue;
		if (found >= 0)
			return -1;
		found = d;
	}
	return found;
}

/* True: as many blocks for each thread, all live at once, and at least half of what the device held. */
static bool has_replicas(const struct sl_model *model, const struct sl_track *track, unsigned threads)
{
	return track->births == track->most_blocks && !(track->births % threads) &&
	       2 * track->born_bytes >= model->devices[track->device + 1]->known_peak;
}

/* The place at which so many threads allocated; of several the one that held most at once. */
static const struct sl_track *place_of_threads(const struct sl_model *model, int device, unsigned threads, bool others_set)
{
	uint64_t *pairs = sl_memory_must(malloc((model->sites.count + 1) * sizeof(*pairs)));
	const struct sl_track *largest = NULL;
	size_t count = 0;

	for (size_t i = 0; i < model->sites.count; i++)
		if (model->sites.item[i].device == device && model->sites.item[i].total_blocks)
			pairs[count++] = (uint64_t)model->sites.item[i].track << 32 | model->sites.item[i].thread;
	qsort(pairs, count, sizeof(*pairs), sl_stats_by_number);
	for (size_t i = 0, next; i < count; i = next) {
		const struct sl_track *track = &model->tracks.item[pairs[i] >> 32];
		unsigned seen = 1;

		for (next = i + 1; next < count && pairs[next] >> 32 == pairs[i] >> 32; next++)
			seen += pairs[next] != pairs[next - 1];
		if (seen == threads && (others_set || has_replicas(model, track, threads)) &&
		    (!largest || track->most_bytes * track->most_blocks > largest->most_bytes * largest->most_blocks))
			largest = track;
	}
	free(pairs);
	return largest;
}

/* count: threads, and devices. */
static void find_in_process(struct sl_report *report, unsigned index)
{
	const struct sl_process *process = &report->processes[index];
	unsigned devices = sl_devices_visible(process);
	int device = only_device(process->model);
	bool others_set = device >= 0 && process->model->devices_set & ~(1ull << device % 64);
	const struct sl_track *track = device >= 0 && devices > 1 && process->trace->header.rank < 0
					       ? place_of_threads(process->model, device, devices, others_set)
					       : NULL;

	if (!track)
		return;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_stray_threads,
						    .severity = "info",
						    .process = (int)index,
						    .device = device,
						    .bytes = track->most_bytes,
						    .stack = track->stack,
						    .count = devices});
}

const struct sl_analysis sl_analysis_threads = {.name = "threads", .find_in_process = find_in_process};
