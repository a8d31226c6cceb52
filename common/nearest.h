/* SPDX-License-Identifier: MIT */
/*
 * The known name that was meant by one that is not known.  Any thread.
 *
 *	struct sl_nearest nearest = {.wanted = word, .distance = SL_NEAREST_TYPO};
 *
 *	for (...)
 *		sl_nearest_consider(&nearest, known[i]);
 *	if (nearest.name)
 *		...did you mean nearest.name?
 */
#ifndef COMMON_NEAREST_H
#define COMMON_NEAREST_H

#define SL_NEAREST_TYPO 4   /* a name as far as this is another word */
#define SL_NEAREST_ANY	127 /* names are shorter than so many characters */

struct sl_nearest {
	const char *wanted, *name; /* name: NULL until one is nearer than `distance` */
	unsigned distance;
};

void sl_nearest_consider(struct sl_nearest *nearest, const char *name);

#endif
