/* SPDX-License-Identifier: MIT */
/*
 * An ordered set of the caller's items.  Its links are in them, so adding and removing need no memory: each item begins with a
 * struct sl_node.  It is a treap whose shape depends on addresses and on sl_map_seed, so no file can choose it.
 */
#pragma once

struct sl_node {
	struct sl_node *less, *more;
};

/* Without a root it is empty. */
struct sl_tree {
	struct sl_node *root;
	int (*compare)(const void *one, const void *other); /* below 0: `one` is before `other`; no two items are equal */
};

void sl_tree_add(struct sl_tree *tree, void *item);
void sl_tree_remove(struct sl_tree *tree, void *item);

/* The neighbours of `key`, which is laid out as an item.  NULL: there is no such item. */
void *sl_tree_before(const struct sl_tree *tree, const void *key); /* the last item before it */
void *sl_tree_up_to(const struct sl_tree *tree, const void *key);  /* the last before it or equal */
void *sl_tree_from(const struct sl_tree *tree, const void *key);   /* the first equal or behind it */
void *sl_tree_after(const struct sl_tree *tree, const void *key);  /* the first behind it */
void *sl_tree_first(const struct sl_tree *tree);
