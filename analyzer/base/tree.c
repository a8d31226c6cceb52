/* SPDX-License-Identifier: MIT */
#include "analyzer/base/tree.h"

#include <stdbool.h>

#include "analyzer/base/map.h"

static uint64_t rank_node(const struct sl_node *node)
{
	return sl_map_mix(sl_map_mix((uintptr_t)node)); /* mixed once, even addresses lie on a line */
}

void sl_tree_add(struct sl_tree *tree, void *item)
{
	struct sl_node *node = item, **at = &tree->root, **less = &node->less, **more = &node->more, *rest;
	uint64_t rank = rank_node(node);

	while (*at && rank_node(*at) >= rank)
		at = tree->compare(node, *at) < 0 ? &(*at)->less : &(*at)->more;
	rest = *at;
	*at = node;
	while (rest) {
		if (tree->compare(rest, node) < 0) {
			*less = rest;
			less = &rest->more;
			rest = rest->more;
		} else {
			*more = rest;
			more = &rest->less;
			rest = rest->less;
		}
	}
	*less = *more = NULL;
}

void sl_tree_remove(struct sl_tree *tree, void *item)
{
	struct sl_node *node = item, **at = &tree->root, *less = node->less, *more = node->more;

	while (*at != node)
		at = tree->compare(node, *at) < 0 ? &(*at)->less : &(*at)->more;
	while (less && more) {
		if (rank_node(less) >= rank_node(more)) {
			*at = less;
			at = &less->more;
			less = less->more;
		} else {
			*at = more;
			at = &more->less;
			more = more->less;
		}
	}
	*at = less ? less : more;
}

/* The last item below the key, or the first of the others.  or_equal: an item that equals the key counts as below it. */
static void *find_neighbour(const struct sl_tree *tree, const void *key, bool or_equal, bool below)
{
	struct sl_node *at = tree->root, *found[2] = {NULL, NULL};

	while (at) {
		bool is_below = tree->compare(at, key) < (or_equal ? 1 : 0);

		found[is_below] = at;
		at = is_below ? at->more : at->less;
	}
	return found[below];
}

void *sl_tree_before(const struct sl_tree *tree, const void *key)
{
	return find_neighbour(tree, key, false, true);
}

void *sl_tree_up_to(const struct sl_tree *tree, const void *key)
{
	return find_neighbour(tree, key, true, true);
}

void *sl_tree_from(const struct sl_tree *tree, const void *key)
{
	return find_neighbour(tree, key, false, false);
}

void *sl_tree_after(const struct sl_tree *tree, const void *key)
{
	return find_neighbour(tree, key, true, false);
}

void *sl_tree_first(const struct sl_tree *tree)
{
	struct sl_node *at = tree->root;

	while (at && at->less)
		at = at->less;
	return at;
}
