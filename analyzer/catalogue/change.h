/* SPDX-License-Identifier: MIT */
/*
 * Finds the runs at which a quantity changed.  The old value is the median of the first runs since the last change, and its
 * spread is their MAD or a floor.  A run is a change if all of this holds:
 *  - it is farther from the median than the spread allows, and farther than 1 % (10 % while there are fewer than 12 runs);
 *  - none of the earlier runs had a value like it;
 *  - the next run confirms it: as far away, on the same side, and near the first.
 * So a single run changes nothing, and neither does a quantity that always jumped between two values.
 * Measured in tests/catalogue/test_change.c.
 */
#ifndef ANALYZER_CATALOGUE_CHANGE_H
#define ANALYZER_CATALOGUE_CHANGE_H

#include <stddef.h>

#define SL_CHANGE_BEFORE 5  /* runs that it takes to know what it was */
#define SL_CHANGE_WINDOW 20 /* of which so many count */

struct sl_series_change {
	size_t at;	      /* index of the run that changed it; at + 1 is the one that confirmed it */
	double before, after; /* medians: of the runs before, and from it to the next change */
};

/*
 * Changes of values, oldest first; least: smaller differences are none, whatever they are a part of.  At most `room` are written; how many.
 */
size_t sl_series_changes(const double *values, size_t count, double least, struct sl_series_change *changes, size_t room);

#endif
