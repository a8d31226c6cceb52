/* SPDX-License-Identifier: MIT */
#include "analyzer/model/state/model.h"

#include <search.h>

#include "analyzer/base/memory.h"

static uint64_t reach(const struct sl_extent *extent)
{
	return extent->bytes ? extent->bytes : 1;
}

static int compare(const void *one, const void *other)
{
	const struct sl_extent *a = one, *b = other;

	if (a->address < b->address)
		return b->address - a->address < reach(a) ? 0 : -1;
	return a->address - b->address < reach(b) ? 0 : 1;
}

void *sl_extents_add(void **tree, void *item)
{
	return *(void **)sl_memory_must(tsearch(item, tree, compare));
}

void sl_extents_remove(void **tree, void *item)
{
	tdelete(item, tree, compare);
}

void *sl_extents_next(void *const *tree, struct sl_extent *range)
{
	struct sl_extent before = *range, *first = NULL, **found;
	uint64_t skipped;

	/* each item found begins before the last one, so the search ends at the first overlap */
	while (before.bytes && (found = tfind(&before, tree, compare))) {
		first = *found;
		before.bytes = first->address > before.address ? first->address - before.address : 0;
	}
	if (!first)
		return NULL;
	skipped = first->address + reach(first) - range->address;
	if (skipped > range->bytes)
		skipped = range->bytes;
	range->address += skipped;
	range->bytes -= skipped;
	return first;
}

void *sl_extents_last(void *const *tree, uint64_t address)
{
	struct sl_extent behind = {0, address < UINT64_MAX ? address + 1 : address}, *last = NULL, **found;

	while (behind.bytes && (found = tfind(&behind, tree, compare))) {
		last = *found;
		behind.address = last->address + reach(last);
		behind.bytes = address - last->address < reach(last) ? 0 : address - behind.address + 1;
	}
	return last;
}

void sl_extents_free(void **tree)
{
	tdestroy(*tree, free);
	*tree = NULL;
}
