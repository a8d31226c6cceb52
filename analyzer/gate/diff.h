/* SPDX-License-Identifier: MIT */
/*
 * Compares two sides, each of one run or several.  With several runs a number has a spread.  A change is noise if the ranges of
 * the two sides touch.
 */
#pragma once

#include "analyzer/base/arena.h"
#include "analyzer/gate/measure.h"

struct sl_side {
	SL_VECTOR(struct sl_measures) runs;
};

enum sl_change {
	SL_CHANGE_SAME,
	SL_CHANGE_NOISE,
	SL_CHANGE_UNKNOWN,
	SL_CHANGE_LESS,
	SL_CHANGE_MORE,
	SL_CHANGE_GONE,
	SL_CHANGE_NEW
};
extern const char *const sl_change_names[]; /* same, noise, unknown, less, more, gone, new */

struct sl_spread {
	uint64_t min, max;
	double mean;
	unsigned count; /* number of runs that know the figure */
};

struct sl_difference {
	enum sl_measure_of of;
	const char *key, *what; /* key: as in struct sl_measure; what: the line, if every run knows the lines of the place */
	const char *beside;	/* as in struct sl_measure_line */
	const struct sl_measure *first; /* in the first row of a place: the measure whose lines the rows show */
	struct sl_spread before, after;
	enum sl_change change;
	double bytes; /* mean after minus mean before */
};

struct sl_differences {
	SL_VECTOR(struct sl_difference)
	list; /* sorted by `of`, then by size of the change; no two of one `of` with the same words */
	struct sl_arena words;
};

void sl_diff(struct sl_differences *differences, const struct sl_side *before, const struct sl_side *after);
void sl_differences_free(struct sl_differences *differences);
