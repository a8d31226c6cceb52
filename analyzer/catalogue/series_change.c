/* SPDX-License-Identifier: MIT */
#include "analyzer/catalogue/catalogue.h"

#include <math.h>

#include "analyzer/base/stats.h"

#define SHARE	  0.01	 /* of the old value: a smaller change does not count */
#define SEVEN	  7	 /* so many runs beyond all earlier ones make a change that is too small for two runs */
#define REPEATED  7	 /* runs that hardly differ, */
#define REPEATS	  5	 /* and then so many that hardly differ: a step */
#define HARDLY	  0.1	 /* of the step */
#define FEW	  12	 /* with fewer runs their spread is not well known: */
#define FEW_SHARE 0.1	 /* then only a change of this size counts */
#define MAD_UNIT  1.4826 /* MAD of a normal distribution to its standard deviation */
#define MEAN_UNIT 1.4	 /* the same for the mean distance without the largest tenth */
#define CHANCE	  0.0001 /* accepted probability that a stable history has so many runs in a row that are like earlier ones */
#define MORE	  3	 /* further runs in a row settle a change, since chance hardly brings so many even over many looks */

/* How many deviations count as far: more when there are fewer runs. */
static double deviations(size_t count)
{
	return 4.5 + 16.0 / (double)count;
}

/* The old value. */
struct level {
	const double *values;
	size_t count;
	double median, far; /* far: the smallest difference that two runs tell */
	double least;	    /* the smallest difference that ever counts */
};

static double median_of(const double *values, size_t count)
{
	double sorted[SL_SERIES_WINDOW];

	memcpy(sorted, values, count * sizeof(*values));
	return sl_stats_median(sorted, count);
}

/*
 * The spread of the runs: their MAD, or the mean distance without the largest tenth where that is more.  The MAD alone is 0 for
 * values that jump between two levels, and small by chance where there are few runs.
 */
static double variation(const double *values, size_t count, double median)
{
	double distances[SL_SERIES_WINDOW], mean = 0;
	size_t kept_count = count - (count + 9) / 10;

	for (size_t i = 0; i < count; i++)
		distances[i] = fabs(values[i] - median);
	qsort(distances, count, sizeof(*distances), sl_stats_by_value);
	for (size_t i = 0; i < kept_count; i++)
		mean += distances[i] / (double)kept_count;
	return fmax(MAD_UNIT * median_of(distances, count), MEAN_UNIT * mean);
}

static struct level level_of(const double *values, size_t count, double least)
{
	struct level level = {.values = values, .count = count < SL_SERIES_WINDOW ? count : SL_SERIES_WINDOW, .least = least};
	double share = level.count < FEW ? FEW_SHARE : SHARE;

	level.median = median_of(values, level.count);
	level.far = fmax(least,
			 fmax(share * fabs(level.median), deviations(level.count) * variation(values, level.count, level.median)));
	return level;
}

/*
 * Counts the runs of the history that were about as far away as `value` on its side.  Those directly before it do not count:
 * they may lead up to it.
 */
static size_t alike(const struct level *level, const double *values, size_t count, double value)
{
	double side = value > level->median ? 1 : -1;
	size_t alike = 0, streak = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_so = side * (values[i] - value) >= -level->far / 2;

		streak = is_so && i >= SL_SERIES_WINDOW ? streak + 1 : 0;
		alike += is_so;
	}
	return alike - streak;
}

/* How many runs in a row chance hardly explains: two if no earlier run was like them, more if some were. */
static size_t in_a_row(size_t alike, size_t count)
{
	double often = ((double)alike + 1) / ((double)count + 1), chance = (double)count * often * often;
	size_t runs = 2;

	if (alike && count < SL_SERIES_WINDOW)
		return SIZE_MAX; /* too few runs tell how often chance does this */
	for (; alike && chance > CHANCE; chance *= often)
		runs++;
	return runs;
}

/*
 * True: of the SEVEN runs after the first two, as far as they are known, two thirds are as far away, or all if few runs came
 * before.  Two runs that come by chance from a mix of two kinds are followed by the old value.
 */
static bool lasts(const struct level *level, const double *values, size_t left, size_t before)
{
	double side = *values > level->median ? 1 : -1;
	size_t following = left - 2 < SEVEN ? left - 2 : SEVEN, as_far = 0;

	for (size_t i = 2; i < 2 + following; i++)
		as_far += side * (values[i] - level->median) > level->far;
	return before < FEW ? as_far == following : 3 * as_far >= 2 * following;
}

/*
 * True: a smaller change, which takes more runs: SEVEN in a row are beyond all before, the first of them nearer to the others
 * than to the median.  Of runs without order that happens once in 50 000 (binomial of 19 and 7) after twelve, and more seldom
 * later.
 */
static bool is_beyond_all(const struct level *level, const double *values, size_t left, size_t before)
{
	double side = *values > level->median ? 1 : -1, first = side * (values[0] - level->median), least = INFINITY;

	if (before < FEW || left < SEVEN)
		return false;
	for (size_t i = 1; i < SEVEN; i++)
		least = fmin(least, side * (values[i] - level->median));
	if (first < least / 2)
		return false;
	least = fmin(least, first);
	if (least <= fmax(level->least, SHARE * fabs(level->median)))
		return false;
	for (size_t i = 1; i <= before; i++)
		if (side * (values[-(ptrdiff_t)i] - level->median) >= least)
			return false;
	return true;
}

/* The least and the most of values. */
static void range_of(const double *values, size_t count, double *min, double *max)
{
	*min = *max = values[0];
	for (size_t i = 1; i < count; i++) {
		*min = fmin(*min, values[i]);
		*max = fmax(*max, values[i]);
	}
}

/*
 * True: two levels, all runs before and the next REPEATS or, where they are known, SEVEN.  A quantity that jumps between two
 * values at random looks so in fewer than 1 of 1000 histories of 12 or 13 runs, however often it has either value: with 7 and 5
 * runs and equal odds, in 1 of 2048.
 */
static bool is_a_step(const struct level *level, const double *values, size_t left, size_t before)
{
	double min[2], max[2], step, floor = fmax(level->least, SHARE * fabs(level->median));

	if (before < REPEATED || left < REPEATS || fabs(values[0] - values[-1]) <= floor)
		return false;
	range_of(values, left < SEVEN ? left : SEVEN, &min[1], &max[1]);
	if (max[1] - min[1] > HARDLY * fabs(values[0] - values[-1])) /* the step is no higher; `before` may be long */
		return false;
	range_of(values - before, before, &min[0], &max[0]);
	step = fmax(min[1] - max[0], min[0] - max[1]);
	return step > floor && fmax(max[0] - min[0], max[1] - min[1]) <= HARDLY * step;
}

/* What is known of a change at the first of `left` values; `before` values of the same level are in front of them. */
enum change { NONE, NAMED, SETTLED };

/* A change that two runs name, or more runs if earlier ones were like them. */
static enum change of_a_few(const struct level *level, const double *values, size_t left, size_t before)
{
	double side = *values > level->median ? 1 : -1, first = side * (values[0] - level->median),
	       next = side * (values[1] - level->median);
	size_t like, runs, streak = 2;

	if (first <= level->far || next <= level->far || fabs(next - first) > level->far)
		return NONE;
	like = alike(level, values - before, before, level->median + side * fmin(first, next));
	runs = in_a_row(like, before);
	while (streak < left && side * (values[streak] - level->median) > level->far)
		streak++;
	if (runs > streak || !lasts(level, values, left, before))
		return NONE;
	return (!like && left >= 2 + SEVEN) || (before >= FEW && streak >= runs + MORE) ? SETTLED : NAMED;
}

static enum change changed(const struct level *level, const double *values, size_t left, size_t before)
{
	enum change few = of_a_few(level, values, left, before);

	if (few != SETTLED && is_a_step(level, values, left, before))
		few = left < SEVEN ? NAMED : SETTLED;
	return few != SETTLED && is_beyond_all(level, values, left, before) ? SETTLED : few;
}

size_t sl_series_changes(const double *values, size_t count, double least, struct sl_series_change *changes, size_t room)
{
	size_t begin = 0, found = 0;
	struct level level = {0};
	enum change how;

	for (size_t i = SL_SERIES_BEFORE; i + 1 < count; i++) {
		if (i - begin < SL_SERIES_BEFORE)
			continue;
		if (i - begin <= SL_SERIES_WINDOW) /* only the first runs of the window count */
			level = level_of(values + begin, i - begin, least);
		how = changed(&level, values + i, count - i, i - begin);
		if (how == NONE)
			continue;
		if (found == room)
			break;
		changes[found++] = (struct sl_series_change){.at = i, .settled = how == SETTLED, .before = level.median};
		begin = i;
	}
	for (size_t c = 0; c < found; c++) {
		size_t end = c + 1 < found ? changes[c + 1].at : count, size = end - changes[c].at;

		changes[c].after = median_of(values + changes[c].at, size < SL_SERIES_WINDOW ? size : SL_SERIES_WINDOW);
	}
	return found;
}

const char *sl_series_unchanged(size_t count)
{
	if (count <= SL_SERIES_BEFORE + 1)
		return "too few runs to tell a change: it takes 5 before it and two since";
	if (count < FEW + 2)
		return "no change that so few runs can tell: less than 10 % takes 12 runs before it, or 7 that hardly differ and 5 "
		       "since";
	return "no change that these runs can tell from their variation";
}
