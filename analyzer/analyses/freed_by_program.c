/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/freed_by_program.h"

#include "analyzer/analyses/leak_windows.h"
#include "analyzer/base/amounts.h"

/* True: the frees after the last allocation were work too. */
static bool is_drained(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	uint64_t teardown_ns = model->tracks.teardown_ns;
	double took, mean;

	if (!teardown_ns || course->death_tick != model->tracks.asked || !course->died_blocks)
		return false;
	took = (double)(course->last_death_ns - teardown_ns);
	mean = course->died_ns / (double)course->died_blocks;
	return course->paused >= SL_KEEPING_BIRTHS && took > SL_QUARTER * (double)(track->last_ns - track->first_ns) &&
	       mean > 0.2 * took && mean < 0.8 * took;
}

bool sl_freed_is_freed(const struct sl_model *model, const struct sl_track *track)
{
	uint64_t bytes, blocks;

	if (track->live_blocks)
		return false;
	sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	return 2 * blocks < track->most_blocks || is_drained(model, track);
}

static uint64_t births_before(const struct sl_track_course *course, uint64_t tick)
{
	uint32_t windows = 0;

	while (windows < course->count && course->windows[windows].begin_tick < tick)
		windows++;
	return windows * course->births_per_window;
}

bool sl_freed_is_last_phase(const struct sl_model *model, const struct sl_track *track, uint64_t begin)
{
	uint64_t ticks = model->tracks.ticks;
	bool worked = false;

	if (track->live_blocks || 2 * begin < ticks)
		return false;
	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *other = &model->tracks.item[i];
		const struct sl_track_course *course = sl_tracks_course(&model->tracks, other);

		if (other == track || other->births < SL_KEEPING_BIRTHS || births_before(course, begin) < SL_KEEPING_BIRTHS)
			continue;
		if (course->last_tick > begin + (ticks - begin) / 10)
			return false;
		worked |= 2 * other->most_blocks <= other->births;
	}
	return worked;
}
