/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/freed_soon.h"

#include "analyzer/analyses/leak_windows.h"
#include "common/base.h"

#define ALIKE	    2 /* sizes differ if one is so many times the other */
#define PERIODS_MIN 2

static void take(struct sl_freed_soon *passing, uint64_t *old, uint64_t time_ns, uint64_t bytes, bool look)
{
	if (look) {
		passing->blocks += sl_freed_soon_is(passing, time_ns, bytes);
		passing->bytes += sl_freed_soon_is(passing, time_ns, bytes) ? bytes : 0;
	} else if (time_ns < passing->young_ns) {
		++*old;
		passing->above = bytes * ALIKE > passing->above ? bytes * ALIKE : passing->above;
		passing->below = bytes / ALIKE < passing->below ? bytes / ALIKE : passing->below;
	}
}

/* Goes through the live blocks of the track: once for the sizes of old blocks, then for passing ones. */
static void go_through(struct sl_freed_soon *passing, uint64_t *old, const struct sl_model *model, uint32_t track, bool look)
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

/* True: the births up to `count` that are kept or freed repeat themselves with this period, and those freed since agree. */
static bool repeats(const struct sl_newest *newest, unsigned count, unsigned period)
{
	for (unsigned i = period; i < newest->count; i++) {
		bool before = newest->left[i < count ? i - period : count - period + (i - count) % period];

		if (i < count ? newest->left[i] != before : !newest->left[i] && before)
			return false;
	}
	return true;
}

/* The shortest period of those births, twice there at least; 0: none. */
static unsigned period_of(const struct sl_newest *newest, unsigned count)
{
	for (unsigned period = 1; period * PERIODS_MIN <= count; period++)
		if (repeats(newest, count, period))
			return period;
	return 0;
}

/* False: the order of births does not tell. */
static bool take_by_order(struct sl_freed_soon *passing, const struct sl_newest *newest)
{
	unsigned sure = newest->count > newest->longest ? newest->count - newest->longest - 1 : 0, period = period_of(newest, sure);

	for (unsigned i = sure; period && i < newest->count; i++) {
		if (!newest->left[i] || newest->left[sure - period + (i - sure) % period])
			continue;
		passing->time_ns[passing->count++] = newest->time_ns[i];
		passing->blocks++;
		passing->bytes += newest->bytes[i];
	}
	return period;
}

static void take_by_size(struct sl_freed_soon *passing, const struct sl_model *model, const struct sl_track *track,
			 uint64_t longest)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	uint64_t windows = 2 + longest / course->births_per_window, old = 0;

	if (windows >= course->count)
		return;
	passing->young_ns = course->windows[course->count - windows].begin_ns;
	go_through(passing, &old, model, (uint32_t)(track - model->tracks.item), false);
	if (old < SL_KEEPING_BIRTHS)
		passing->young_ns = UINT64_MAX;
	else
		go_through(passing, &old, model, (uint32_t)(track - model->tracks.item), true);
}

struct sl_freed_soon sl_freed_soon_at(const struct sl_model *model, const struct sl_track *track, bool lives)
{
	struct sl_freed_soon passing = {.below = UINT64_MAX, .young_ns = UINT64_MAX};
	struct sl_newest newest = sl_tracks_newest(&model->tracks, track, lives);
	uint64_t bytes = track->live_bytes, blocks = track->live_blocks, mean;

	if (!lives)
		sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	if (track->births == blocks || !blocks || take_by_order(&passing, &newest))
		return passing;
	mean = (track->born_bytes - bytes) / (track->births - blocks);
	passing.least = mean / ALIKE;
	passing.most = mean * ALIKE;
	if (lives && track->kind < SL_KIND_COUNT && track->births - blocks >= SL_KEEPING_BIRTHS)
		take_by_size(&passing, model, track, sl_tracks_lived(&model->tracks, track));
	for (unsigned age = 0; age < newest.count && age <= newest.longest; age++) {
		unsigned i = newest.count - 1 - age;

		passing.unsure += newest.left[i] && newest.bytes[i] >= passing.least && newest.bytes[i] <= passing.most &&
				  !sl_freed_soon_is(&passing, newest.time_ns[i], newest.bytes[i]);
	}
	return passing;
}
