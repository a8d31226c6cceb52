/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "analyzer/analyses/leak.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/search.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/state/model.h"

/* The births of a place that was busy for half of the run's births at least, else 0.  A loop of the set-up counts no rounds. */
static uint64_t births_all_along(const struct sl_tracks *tracks, size_t index)
{
	const struct sl_track_course *course = &tracks->course[index];

	return tracks->item[index].births >= SL_KEEPING_BIRTHS && course->count &&
			       2 * (course->last_tick - course->windows[0].begin_tick) >= tracks->ticks
		       ? tracks->item[index].births
		       : 0;
}

/* The number of births that most places have in common need not be that of the program's own loop. */
void sl_leak_find_rounds(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	const struct sl_label *steps = sl_model_steps(process->model);
	unsigned most = 1;

	if (steps && steps->entries >= SL_KEEPING_BIRTHS) {
		process->iterations = (struct sl_iterations){steps->entries, sl_defs_text(process->model->defs, steps->text), true};
		return;
	}
	for (size_t i = 0; i < tracks->count && i < SL_COMPARED_MAX; i++) {
		uint64_t births = births_all_along(tracks, i);
		unsigned same = 0;

		for (size_t k = 0; births && k < tracks->count && k < SL_COMPARED_MAX; k++)
			same += births_all_along(tracks, k) == births;
		if (same > most || (same == most && most > 1 && births > process->iterations.count)) {
			most = same;
			process->iterations = (struct sl_iterations){births, "pass", false};
		}
	}
}

double sl_leak_births_by(const struct sl_tracks *tracks, const struct sl_track *track, uint64_t ns)
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);
	size_t later = SL_FIRST(i, course->count, course->windows[i].begin_ns > ns);
	double begin = later ? (double)course->windows[later - 1].begin_ns : 0, each = (double)course->births_per_window;
	double end = later < course->count ? (double)course->windows[later].begin_ns : (double)track->last_ns;

	if (!later)
		return 0;
	return (double)(later - 1) * each + (later < course->count ? each : (double)course->births_in_last) *
						    (end > begin ? fmin(1, ((double)ns - begin) / (end - begin)) : 1);
}

uint64_t sl_leak_rounds(const struct sl_process *process, const struct sl_track *track)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	double all = (double)process->iterations.count, rounds;
	size_t i = 0;

	if (!process->iterations.count || process->iterations.by_label)
		return 0;
	while (births_all_along(tracks, i) != process->iterations.count)
		i++;
	rounds = sl_leak_births_by(tracks, &tracks->item[i], track->last_ns) -
		 sl_leak_births_by(tracks, &tracks->item[i], track->first_ns);
	return sl_stats_bytes(rounds < SL_NEARLY_ALL * all ? fmax(1, rounds) : all);
}
