/* SPDX-License-Identifier: MIT */
/*
 * Finds the runs at which a quantity changed.  The old value is the median of the first runs since the last change, and its
 * spread is their MAD or a floor.  A run is a change if all of this holds:
 *  - it is farther from the median than the spread allows, and farther than 1 % (10 % while there are fewer than 12 runs);
 *  - the next run confirms it: as far away, on the same side, and near the first;
 *  - two thirds of the next seven runs, as far as they are known, are as far away too (all, if fewer than 12 runs came before),
 *    so later runs may take back a change that two runs had named;
 *  - if earlier runs were like it, so many more in a row are as far away that chance hardly explains them; fewer than 20
 *    earlier runs do not tell how likely chance is, and then there is no change.
 * Three more runs in a row settle a change (if fewer than 12 came before: the next seven).  Whoever looks after every run sees
 * two runs that are far away by chance now and then, but hardly ever five.
 * It is also a change if seven runs in a row are beyond all earlier ones, at least twelve, and farther than 1 %: a smaller
 * change takes more runs.  Or if five runs that hardly differ follow seven that hardly differ, farther than 1 %; seven settle
 * it.
 * So a single run changes nothing, and neither does a quantity that always jumped between two values.
 * Measured in tests/catalogue/test_series_change.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SL_SERIES_BEFORE 5  /* runs needed before a change can be found */
#define SL_SERIES_WINDOW 20 /* at most this many of the first runs are used */

struct sl_series_change {
	size_t at;	      /* index of the run that made the change; the next run confirmed it */
	bool settled;	      /* false: two runs, or a few more, that may have come by chance */
	double before, after; /* medians: of the runs before, and of those up to the next change */
};

/* Finds the changes of values, oldest first.  least: smaller differences never count.  Writes at most `room`; returns how many. */
size_t sl_series_changes(const double *values, size_t count, double least, struct sl_series_change *changes, size_t room);

/* The words for a change that is not settled. */
#define SL_SERIES_UNSETTLED "not sure yet: later runs may take it back"

/* The words for so many values without a change. */
const char *sl_series_unchanged(size_t count);
