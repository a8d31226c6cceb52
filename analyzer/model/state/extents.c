/* SPDX-License-Identifier: MIT */
#include "analyzer/model/state/model.h"

#include "analyzer/base/stats.h"

static uint64_t reach(const struct sl_extent *extent)
{
	return extent->bytes ? extent->bytes : 1;
}

static int compare_begins(const void *one, const void *other)
{
	const struct sl_extent *a = one, *b = other;

	return SL_RISING(a->address, b->address);
}

void sl_extents_add(struct sl_tree *tree, void *item)
{
	tree->compare = compare_begins;
	sl_tree_add(tree, item);
}

void *sl_extents_next(const struct sl_tree *tree, struct sl_extent *range)
{
	struct sl_extent *first = sl_tree_up_to(tree, range);
	uint64_t skipped;

	if (!first || range->address - first->address >= reach(first))
		first = sl_tree_after(tree, range);
	if (!first || (first->address > range->address && first->address - range->address >= range->bytes) || !range->bytes)
		return NULL;
	skipped = first->address + reach(first) - range->address;
	if (skipped > range->bytes)
		skipped = range->bytes;
	range->address += skipped;
	range->bytes -= skipped;
	return first;
}

void sl_extents_free(struct sl_tree *tree)
{
	for (void *item; (item = tree->root);) {
		sl_tree_remove(tree, item);
		free(item);
	}
}
