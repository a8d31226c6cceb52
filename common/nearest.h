/* SPDX-License-Identifier: MIT */
/*
 * Finds the known name that a user probably meant by an unknown one.  Any thread.
 *
 *	struct sl_nearest nearest = {.wanted = word, .distance = SL_NEAREST_TYPO};
 *
 *	for (...)
 *		sl_nearest_consider(&nearest, known[i]);
 *	if (nearest.name)
 *		...did you mean nearest.name?
 */
#pragma once

#define SL_NEAREST_TYPO 4   /* a name at this distance is another word */
#define SL_NEAREST_ANY	127 /* more than any distance: names are shorter than this */

struct sl_nearest {
	const char *wanted, *name; /* name: NULL until one is nearer than `distance` */
	unsigned distance;
};

void sl_nearest_consider(struct sl_nearest *nearest, const char *name);
