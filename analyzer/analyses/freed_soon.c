/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/freed_soon.h"

#include "analyzer/analyses/leak_windows.h"
#include "common/base.h"

#define ALIKE	    2 /* sizes differ if one is so many times the other */
#define PERIODS_MIN 2

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

struct sl_freed_soon sl_freed_soon_at(const struct sl_model *model, const struct sl_track *track, bool lives)
{
	struct sl_freed_soon passing = {0};
	struct sl_newest newest = sl_tracks_newest(&model->tracks, track, lives);
	uint64_t bytes = track->live_bytes, blocks = track->live_blocks, mean;

	if (!lives)
		sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	if (track->births == blocks || !blocks || take_by_order(&passing, &newest))
		return passing;
	mean = (track->born_bytes - bytes) / (track->births - blocks);
	for (unsigned age = 0; age < newest.count && age <= newest.longest; age++) {
		unsigned i = newest.count - 1 - age;

		passing.unsure += newest.left[i] && newest.bytes[i] >= mean / ALIKE && newest.bytes[i] <= mean * ALIKE;
	}
	return passing;
}
