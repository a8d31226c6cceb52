/* SPDX-License-Identifier: MIT */
/*
 * Stretches of addresses that do not overlap, found by any address in them: a balanced tree (tsearch) of the caller's items,
 * each from malloc, which begin with a struct sl_extent.
 */
#pragma once

#include <stdint.h>

struct sl_extent {
	uint64_t address, bytes; /* bytes 0 counts as 1 */
};

/* The item itself, or the one that is there already and overlaps it. */
void *sl_extents_add(void **tree, void *item);

/* Does not free it. */
void sl_extents_remove(void **tree, void *item);

/* The first item that overlaps the range, NULL: none.  The range becomes what lies behind that item. */
void *sl_extents_next(void *const *tree, struct sl_extent *range);

/* The last item that begins at the address or before it. */
void *sl_extents_last(void *const *tree, uint64_t address);

void sl_extents_free(void **tree);
