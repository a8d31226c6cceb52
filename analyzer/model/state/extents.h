/* SPDX-License-Identifier: MIT */
/*
 * Ranges of addresses that do not overlap, found by any address in them.  A balanced tree (tsearch) of the caller's items, each
 * from malloc and beginning with a struct sl_extent.
 */
#pragma once

#include <stdint.h>

struct sl_extent {
	uint64_t address, bytes; /* bytes 0 counts as 1 */
};

/* Adds the item and returns it; or returns an item of the tree that overlaps it, and adds nothing. */
void *sl_extents_add(void **tree, void *item);

/* Takes the item out of the tree, without freeing it. */
void sl_extents_remove(void **tree, void *item);

/* The first item that overlaps the range, NULL: none. `range` then becomes the rest behind that item. */
void *sl_extents_next(void *const *tree, struct sl_extent *range);

/* The last item that begins at the address or before it. */
void *sl_extents_last(void *const *tree, uint64_t address);

void sl_extents_free(void **tree);
