/* SPDX-License-Identifier: MIT */
#include "common/below.h"

#include <stdlib.h>
#include <string.h>

bool sl_below_glob(const char *literal, const char *pattern, glob_t *found)
{
	char *whole = malloc(2 * strlen(literal) + strlen(pattern) + 1), *end = whole;
	bool is_found;

	if (!whole)
		return false;
	for (; *literal; literal++) {
		if (strchr(SL_GLOB_SPECIAL, *literal))
			*end++ = '\\';
		*end++ = *literal;
	}
	strcpy(end, pattern);
	is_found = !glob(whole, 0, NULL, found);
	free(whole);
	return is_found;
}
