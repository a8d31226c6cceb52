/* SPDX-License-Identifier: MIT */
/*
 * Python Stormlog's leak heuristics, applied to what a process had in use on a device over its life.  They see only totals, and
 * are reported where neither a range nor a leak explains the growth.  The series is taken where the timeline's bins end, evenly
 * over the run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/analyses/leak_windows.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/report/report.h"

#define POINTS_MAX 32 /* few enough that each interval contains several steps of a program */
#define POINTS_MIN 20 /* with fewer rising intervals it may be chance */

static size_t take_series(const struct sl_line *line, double *megabytes)
{
	size_t bins = line->bin - line->first + 1, count;

	/* A program that has freed everything is about to end. */
	while (bins > 1 && !line->bins[line->first + bins - 1].last)
		bins--;
	count = bins < POINTS_MAX ? bins : POINTS_MAX;
	for (size_t i = 0; i < count; i++)
		megabytes[i] = (double)line->bins[line->first + (count > 1 ? (bins - 1) * i / (count - 1) : 0)].last / (1 << 20);
	return count;
}

/* The mean request of each quarter of a place's windows, of which the last is not full. */
static bool take_quarters(const struct sl_track_course *course, double mean[4])
{
	unsigned count = course->count - 1;

	if (course->count <= SL_KEEPING_BIRTHS)
		return false;
	for (unsigned q = 0; q < 4; q++) {
		unsigned from = count * q / 4, to = count * (q + 1) / 4;
		double sum = 0;

		for (unsigned i = from; i < to; i++)
			sum += (double)course->windows[i].born_bytes;
		mean[q] = sum / (double)((to - from) * course->births_per_window);
	}
	for (unsigned q = 0; q < 3; q++)
		if (mean[q + 1] < (1 - SL_ALIKE) * mean[q])
			return false;
	return mean[0] > 0 && mean[3] >= SL_LARGER * mean[0];
}

/*
 * True: the requests got much larger, from window to window, by about as much in each quarter, until the process's last births.
 */
static bool goes_on(const struct sl_tracks *tracks, const struct sl_track *track, const double mean[4])
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);
	double least = mean[3] - mean[0];

	if ((double)course->last_tick < (1 - SL_LITTLE) * (double)tracks->ticks)
		return false;
	for (unsigned i = 1; i + 1 < course->count; i++)
		if (course->windows[i].born_bytes <= course->windows[i - 1].born_bytes)
			return false; /* a curriculum has levels, and rare shapes come at any time */
	for (unsigned q = 0; q < 3; q++)
		least = mean[q + 1] - mean[q] < least ? mean[q + 1] - mean[q] : least;
	return mean[3] >= 2 * mean[0] && 3 * least >= SL_THIRD * (mean[3] - mean[0]);
}

/*
 * The place whose larger requests add most to what is held at once; of several that grew alike the first, which others may
 * follow.
 */
static void find_larger(const struct sl_model *model, struct sl_heuristics *found, double least)
{
	double times = 0;

	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		double mean[4], more;

		if (track->device != found->device || track->kind >= SL_OBJECT_CONTEXT ||
		    track->births == track->most_blocks || /* each block stays: it loads, or keeps */
		    !take_quarters(sl_tracks_course(&model->tracks, track), mean))
			continue;
		more = (mean[3] - mean[0]) * (double)track->most_blocks;
		if (more < least)
			continue;
		least = more;
		if (fabs(times / (mean[3] / mean[0]) - 1) < SL_TRACE)
			continue;
		times = mean[3] / mean[0];
		found->larger = track;
		found->larger_from = sl_stats_bytes(mean[0]);
		found->larger_to = sl_stats_bytes(mean[3]);
		found->larger_on = goes_on(&model->tracks, track, mean);
	}
}

static void process(struct sl_process *process)
{
	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++) {
		const struct sl_device_state *state = process->model->devices[d];
		const struct sl_line *line = state && state->torch.used ? state->torch.allocated : state ? state->line : NULL;
		struct sl_heuristics *found;
		double megabytes[POINTS_MAX];

		if (!line || !line->begun)
			continue;
		found = SL_PUSH(&process->heuristics);
		*found = (struct sl_heuristics){.device = state->device};
		found->samples = take_series(line, megabytes);
		sl_leak_series_analyze(megabytes, found->samples, &found->series);
		if (process->model->folded_ns)
			continue;
		find_larger(process->model, found, SL_TRACE * (double)state->known_peak);
	}
}

/* True: another finding names the growth, or the user did: a label's growth, a leak, also a suppressed one, a cache that fills. */
static bool is_named(const struct sl_report *report, unsigned process)
{
	static const enum sl_found kinds[] = {SL_FOUND_leak_kept,	SL_FOUND_leak_growing,	    SL_FOUND_label_growing,
					      SL_FOUND_memory_filling,	SL_FOUND_memory_only_taken, SL_FOUND_memory_collected,
					      SL_FOUND_memory_kept_late};
	const struct sl_process *p = &report->processes[process];
	bool named = false;

	for (size_t i = 0; i < report->findings.count; i++)
		for (size_t k = 0; k < SL_COUNT(kinds) && report->findings.item[i].process == (int)process; k++)
			named |= report->findings.item[i].kind == kinds[k];
	for (size_t k = 0; k < p->leaks_by_line.count; k++)
		named |= p->leaks_by_line.item[k].verdict == SL_KEPT_MEANT;
	return named;
}

/* count: 1 where memory in use rises. */
static void find_rising(struct sl_report *report, unsigned process, const struct sl_heuristics *found)
{
	const struct sl_leak_series *series = &found->series;
	uint64_t first = sl_stats_bytes(series->first_average * (1 << 20)), last = sl_stats_bytes(series->last_average * (1 << 20));
	bool rises = found->samples >= POINTS_MIN && series->monotonic;

	if (!rises && !found->larger_on)
		return;
	if (found->larger && report->processes[process].model->ooms.count)
		return; /* the error tells it */
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_memory_rising,
						    .severity = "info",
						    .process = (int)process,
						    .device = found->device,
						    .bytes = rises ? last - first : found->larger_to - found->larger_from,
						    .stack = found->larger ? found->larger->stack : (struct sl_stack){0},
						    .course = found,
						    .count = rises});
}

static void find_in_process(struct sl_report *report, unsigned index)
{
	const struct sl_process *p = &report->processes[index];
	bool named = p->heuristics.count && is_named(report, index);

	for (size_t k = 0; k < p->heuristics.count && !named; k++)
		find_rising(report, index, &p->heuristics.item[k]);
}

const struct sl_analysis sl_analysis_heuristics = {.name = "heuristics", .process = process, .find_in_process = find_in_process};
