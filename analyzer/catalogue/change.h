/* SPDX-License-Identifier: MIT */
/*
 * Where a quantity changed over runs.  What it was is the median of the first runs since the last change; how much it varies is their MAD, or
 * more.  A run changed it that is farther away than they vary, and than 1 % (10 % where they are fewer than 12), that is like none of
 * them, and that the next run confirms: it is as far away on the same side, and near the first.  So one run alone names nothing, nor does
 * a quantity that has always jumped between two values.  Measured in tests/catalogue/test_change.c.
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
