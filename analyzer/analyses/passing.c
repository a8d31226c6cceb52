/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/passing.h"

#include "analyzer/analyses/keeping.h"
#include "common/base.h"

#define ALIKE 2 /* a size is another where it is so many times larger or smaller */

static void take(struct sl_passing *passing, uint64_t *old, uint64_t time_ns, uint64_t bytes, bool look)
{
	if (look) {
		passing->blocks += sl_passing_is(passing, time_ns, bytes);
		passing->bytes += sl_passing_is(passing, time_ns, bytes) ? bytes : 0;
	} else if (time_ns < passing->young_ns) {
		++*old;
		passing->above = bytes * ALIKE > passing->above ? bytes * ALIKE : passing->above;
		passing->below = bytes / ALIKE < passing->below ? bytes / ALIKE : passing->below;
	}
}

/* Goes through what lives of the track: first for the sizes of old blocks, then for passing ones. */
static void go_through(struct sl_passing *passing, uint64_t *old, const struct sl_model *model, uint32_t track, bool look)
{
	const struct sl_table *spaces[] = {&model->pointers, &model->arrays, &model->blocks};
	const struct sl_physical *physical;
	size_t count;

	for (size_t s = 0; s < SL_COUNT(spaces); s++)
		SL_TABLE_EACH(spaces[s], live)
		{
			if (live->site < model->sites.count && model->sites.item[live->site].track == track)
				take(passing, old, live->time_ns, live->bytes, look);
		}
	physical = sl_vmm_physical(model->vmm, &count);
	for (size_t i = 0; i < count; i++)
		if (physical[i].site != SL_NO_SITE && model->sites.item[physical[i].site].track == track)
			take(passing, old, physical[i].time_ns, physical[i].bytes, look);
}

struct sl_passing sl_passing_at(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	const struct sl_passing none = {.young_ns = UINT64_MAX};
	uint64_t freed = track->births - track->live_blocks, mean, old = 0;
	uint64_t windows = 2 + sl_tracks_lived(&model->tracks, track) / course->births_per_window;
	struct sl_passing passing = {.below = UINT64_MAX};

	if (track->kind >= SL_KIND_COUNT || freed < SL_KEEPING_BIRTHS || !track->live_blocks || windows >= course->count)
		return none;
	mean = (track->born_bytes - track->live_bytes) / freed;
	passing.least = mean / ALIKE;
	passing.most = mean * ALIKE;
	passing.young_ns = course->windows[course->count - windows].begin_ns;
	go_through(&passing, &old, model, (uint32_t)(track - model->tracks.item), false);
	if (old < SL_KEEPING_BIRTHS)
		return none;
	go_through(&passing, &old, model, (uint32_t)(track - model->tracks.item), true);
	return passing;
}
