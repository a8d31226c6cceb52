/* SPDX-License-Identifier: MIT */
#include "analyzer/catalogue/change.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/stats.h"

#define SHARE	  0.01	 /* of the old value: a smaller change does not count */
#define FEW	  12	 /* with fewer runs their spread is not well known: */
#define FEW_SHARE 0.1	 /* then only a change of this size counts */
#define MAD_UNIT  1.4826 /* MAD of a normal distribution to its standard deviation */
#define MEAN_UNIT 1.4	 /* the same for the mean distance without the largest tenth */

/* How many deviations count as far: more when there are fewer runs. */
static double deviations(size_t count)
{
	return 4.5 + 16.0 / (double)count;
}

/* The old value. */
struct level {
	const double *values;
	size_t count;
	double median, far; /* far: the smallest difference that counts */
};

static double median_of(const double *values, size_t count)
{
	double sorted[SL_CHANGE_WINDOW];

	memcpy(sorted, values, count * sizeof(*values));
	return sl_stats_median(sorted, count);
}

/*
 * The spread of the runs: their MAD, or the mean distance without the largest tenth where that is more.  The MAD alone is 0 for
 * values that jump between two levels, and small by chance where there are few runs.
 */
static double variation(const double *values, size_t count, double median)
{
	double distances[SL_CHANGE_WINDOW], mean = 0;
	size_t kept = count - (count + 9) / 10;

	for (size_t i = 0; i < count; i++)
		distances[i] = fabs(values[i] - median);
	qsort(distances, count, sizeof(*distances), sl_stats_by_value);
	for (size_t i = 0; i < kept; i++)
		mean += distances[i] / (double)kept;
	return fmax(MAD_UNIT * median_of(distances, count), MEAN_UNIT * mean);
}

static struct level level_of(const double *values, size_t count, double least)
{
	struct level level = {.values = values, .count = count < SL_CHANGE_WINDOW ? count : SL_CHANGE_WINDOW};
	double share = level.count < FEW ? FEW_SHARE : SHARE;

	level.median = median_of(values, level.count);
	level.far = fmax(least,
			 fmax(share * fabs(level.median), deviations(level.count) * variation(values, level.count, level.median)));
	return level;
}

/* True: an earlier run had about this value, or one further away.  In a full window one such run may be chance, so two are needed. */
static bool was_so(const struct level *level, double value)
{
	double side = value > level->median ? 1 : -1;
	unsigned like = 0;

	for (size_t i = 0; i < level->count; i++)
		like += side * (level->values[i] - value) >= -level->far / 2;
	return like > (level->count == SL_CHANGE_WINDOW);
}

static bool changed(const struct level *level, double value, double next)
{
	double difference = value - level->median, then = next - level->median;

	return fabs(difference) > level->far && fabs(then) > level->far && difference * then > 0 &&
	       fabs(next - value) <= level->far && !was_so(level, value) && !was_so(level, next);
}

size_t sl_series_changes(const double *values, size_t count, double least, struct sl_series_change *changes, size_t room)
{
	size_t begin = 0, found = 0;
	struct level level = {0};

	for (size_t i = SL_CHANGE_BEFORE; i + 1 < count; i++) {
		if (i - begin < SL_CHANGE_BEFORE)
			continue;
		if (i - begin <= SL_CHANGE_WINDOW) /* only the first runs of the window count */
			level = level_of(values + begin, i - begin, least);
		if (!changed(&level, values[i], values[i + 1]))
			continue;
		if (found == room)
			break;
		changes[found++] = (struct sl_series_change){.at = i, .before = level.median};
		begin = i;
	}
	for (size_t c = 0; c < found; c++) {
		size_t end = c + 1 < found ? changes[c + 1].at : count, size = end - changes[c].at;

		changes[c].after = median_of(values + changes[c].at, size < SL_CHANGE_WINDOW ? size : SL_CHANGE_WINDOW);
	}
	return found;
}
