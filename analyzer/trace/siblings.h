/* SPDX-License-Identifier: MIT */
/* The other files of a process, of which one was named.  Each folder is read once.  All zeroes is empty. */
#pragma once

#include <stdbool.h>

#include "analyzer/base/map.h"
#include "analyzer/base/vector.h"

struct sl_beside {
	struct sl_map folders, stems;
};

struct sl_beside_files {
	SL_VECTOR(char *) paths; /* in no order */
	bool given;
};

/*
 * The traces and ring of the process whose trace or ring `path` is, this one among them; NULL: they were given before, or the
 * folder cannot be listed.  Valid until the end.
 */
const struct sl_beside_files *sl_siblings_once(struct sl_beside *beside, const char *path);

void sl_siblings_free(struct sl_beside *beside);
