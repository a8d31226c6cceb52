/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "analyzer/analyses/leak.h"
#include "analyzer/model/state/model.h"
#include "analyzer/report/window_facts.h"

#define WINDOW_BEGIN 0.5 /* of the window: by then a place has begun, since what sets the program up asks for much */
#define WINDOW_EDGE  1.5 /* rounds in which a place may have ended: a window cuts them */
#define WINDOW_KEPT  0.9 /* of its blocks a place that leaks still holds so many */
#define WINDOW_PARTS 4	 /* in each of which a place that frees most of its blocks keeps some */

/* True: each part of the window leaves at least half a block for each of its rounds.  begin: births before the window. */
static bool leaves_in_each_part(const struct sl_model *model, const struct sl_track *track, uint64_t rounds, double begin)
{
	double part = ((double)model->tracks.ticks - begin) / WINDOW_PARTS, least = fmax(1, (double)rounds / WINDOW_PARTS / 2);
	struct sl_leak_windows counted, left;
	double before = 0;
	unsigned at = 0;

	sl_leak_windows_take(model, track, true, model->now_ns, &counted);
	sl_leak_windows_take_left(model, track, &counted, &left);
	for (unsigned i = 1; i <= WINDOW_PARTS; i++) {
		while (at + 1 < left.count && left.tick[at] < begin + i * part)
			at++;
		if (left.kept[at] - before < least)
			return false;
		before = left.kept[at];
	}
	return true;
}

/*
 * A window of a snapshot has few rounds, of each of which everything is known: a place leaks that makes something in each
 * round or in each second one, up to the last, and still holds it.  Births are the clock, since a first step takes long.
 */
static bool judge_window(const struct sl_process *process, const struct sl_track *track, uint64_t rounds, uint64_t before,
			 struct sl_kept *kept)
{
	const struct sl_model *model = process->model;
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	uint64_t begin_ns = model->header->monotonic_ns, end_ns = model->now_ns;
	double span = (double)(model->tracks.ticks - before);

	if (!sl_leak_is_enough(process, track, (double)track->live_bytes) || track->first_ns <= begin_ns ||
	    track->births + 1 < SL_WINDOW_ROUNDS_MIN || 2 * track->births + 2 < rounds || !course->count ||
	    (double)course->windows[0].begin_tick - (double)before > WINDOW_BEGIN * span ||
	    (double)(model->tracks.ticks - course->last_tick) > WINDOW_EDGE * span / (double)rounds)
		return false;
	if ((double)track->live_blocks < WINDOW_KEPT * (double)track->births &&
	    !leaves_in_each_part(model, track, rounds, (double)before))
		return false;
	*kept = (struct sl_kept){.track = track,
				 .verdict = SL_KEPT_GROWING,
				 .amount = (double)track->live_bytes,
				 .births = track->births,
				 .blocks = track->live_blocks,
				 .bytes = track->live_bytes,
				 .per_birth = (double)track->live_bytes / (double)track->births,
				 .per_second = (double)track->live_bytes / ((double)(end_ns - begin_ns) / 1e9),
				 .confidence = 1,
				 .since_ns = track->first_ns,
				 .left_blocks = track->live_blocks,
				 .left_bytes = track->live_bytes,
				 .rounds = rounds};
	return true;
}

void sl_leak_of_snapshot(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	uint64_t rounds = sl_window_rounds(process), before = 0;
	uint64_t begin_ns = process->model->header->monotonic_ns;
	struct sl_kept kept;

	process->iterations = (struct sl_iterations){rounds, "round", false};
	for (size_t i = 0; i < tracks->count; i++)
		before += tracks->item[i].last_ns <= begin_ns ? tracks->item[i].births : 0;
	for (size_t i = 0; i < tracks->count && rounds >= SL_WINDOW_ROUNDS_MIN; i++)
		if (tracks->item[i].kind == SL_KIND_block && judge_window(process, &tracks->item[i], rounds, before, &kept))
			*SL_PUSH(&process->kept) = kept;
}
