/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/rounds.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"
#include "analyzer/snapshot/names.h"
#include "common/base.h"

#define MOST_PART  0.8	/* of what a function asks for: one line of it that has so much is where the loop is looked for */
#define SHARE_PART 0.05 /* a line with less says nothing of a loop */
#define FREED_PART 0.5	/* of the blocks that a loop makes it frees so many: one that keeps all of them builds something */

/* A line that the lines above it led to; of a function that is not looked into all its lines. */
struct node {
	uint32_t parent;
	uint32_t child, sibling; /* 0: none */
	uint32_t last;		 /* the child that asked last */
	uint64_t asked, runs;	 /* runs: how often it asked after another line of its function had */
	bool inside;		 /* of a module, an optimizer or a constructor: not looked into */
	bool module;
};

struct tree {
	const struct sl_snapshot *snapshot;
	SL_VECTOR(struct node) nodes; /* the first is the root */
	struct sl_sequences keys;     /* parent, function, file, line -> its index - 1 */
	SL_VECTOR(uint32_t) leaf_of;  /* of each stack, 1 + its last node; 0: it is not known yet, or has no Python */
};

static bool is_any(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(text, list[i]))
			return true;
	return false;
}

/* All calls behind this frame are one round. */
static bool is_inside(const struct sl_snapshot *s, uint32_t frame, bool *module)
{
	static const char *const calls[] = {"forward", "_call_impl", "_wrapped_call_impl"};
	static const char *const makes[] = {"__init__",	  "_apply",	  "load_state_dict", "from_pretrained",
					    "load_model", "load_weights", "_load_weights",   "load_checkpoint"};
	size_t count;
	const uint32_t *words = sl_sequences_at(&s->frames, frame, &count);
	const char *function = sl_snapshot_text(s, words[0]) ?: "", *file = sl_snapshot_text(s, words[1]) ?: "";

	*module = is_any(function, calls, SL_COUNT(calls));
	return *module || is_any(function, makes, SL_COUNT(makes)) || strstr(file, "/torch/") || strstr(file, "\\torch\\");
}

static uint32_t child_of(struct tree *tree, uint32_t parent, uint32_t frame)
{
	const struct sl_snapshot *s = tree->snapshot;
	bool module, inside = is_inside(s, frame, &module);
	size_t count;
	const uint32_t *words = sl_sequences_at(&s->frames, frame, &count),
		       key[] = {parent, words[0], words[1], inside ? 0 : words[2]};
	uint32_t index = sl_sequences_add(&tree->keys, key, SL_COUNT(key)) + 1;

	if (index == tree->nodes.count) {
		*SL_PUSH(&tree->nodes) = (struct node){
			.parent = parent, .sibling = tree->nodes.item[parent].child, .inside = inside, .module = module};
		tree->nodes.item[parent].child = index;
	}
	return index;
}

/* The node of the innermost line that is looked at; 0: no line of Python. */
static uint32_t leaf_of(struct tree *tree, uint32_t stack)
{
	size_t count;
	const uint32_t *frames = sl_sequences_at(&tree->snapshot->stacks, stack, &count);
	uint32_t node = 0;

	while (tree->leaf_of.count <= stack)
		*SL_PUSH(&tree->leaf_of) = 0;
	if (tree->leaf_of.item[stack])
		return tree->leaf_of.item[stack] - 1;
	for (size_t i = count; i-- && !tree->nodes.item[node].inside;)
		if (sl_snapshot_is_python(tree->snapshot, frames[i]))
			node = child_of(tree, node, frames[i]);
	tree->leaf_of.item[stack] = node + 1;
	return node;
}

static void ask(struct tree *tree, uint32_t leaf)
{
	for (uint32_t at = leaf; at;) {
		struct node *node = &tree->nodes.item[at], *parent = &tree->nodes.item[node->parent];

		node->asked++;
		node->runs += parent->last != at;
		parent->last = at;
		at = node->parent;
	}
	tree->nodes.item[0].asked++;
}

/* How often the rarest of the stacks below a call of a module asked: all of them ask in each call. */
static uint64_t calls_of(const struct sl_rebuilt *r, const struct tree *tree, uint32_t leaf)
{
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;
	uint64_t *asked = sl_memory_must(calloc(tree->leaf_of.count + 1, sizeof(*asked))), least = UINT64_MAX;

	for (size_t i = 0; i < r->events.count; i++)
		if (events[i].action == SL_SNAPSHOT_ALLOC && events[i].stack < tree->leaf_of.count &&
		    tree->leaf_of.item[events[i].stack] == leaf + 1)
			asked[events[i].stack]++;
	for (size_t i = 0; i < tree->leaf_of.count; i++)
		least = asked[i] && asked[i] < least ? asked[i] : least;
	free(asked);
	return least == UINT64_MAX ? 1 : least;
}

static uint64_t rounds_in(const struct sl_rebuilt *r, const struct tree *tree)
{
	uint32_t at = 0;

	for (;;) {
		const struct node *node = &tree->nodes.item[at];
		uint64_t runs = 0;
		uint32_t largest = 0;

		if (node->inside)
			return node->module ? calls_of(r, tree, at) : 1;
		for (uint32_t c = node->child; c; c = tree->nodes.item[c].sibling) {
			const struct node *child = &tree->nodes.item[c];

			if ((double)child->asked >= SHARE_PART * (double)node->asked && child->runs > runs)
				runs = child->runs;
			if ((double)child->asked >= MOST_PART * (double)node->asked)
				largest = c;
		}
		if (runs > 1 || !largest)
			return runs ? runs : 1;
		at = largest;
	}
}

/* True: the loop frees most of the blocks that it makes. */
static bool frees(const struct sl_rebuilt *r)
{
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;
	uint64_t made = 0, freed = 0;

	for (size_t i = 0; i < r->events.count; i++) {
		made += events[i].action == SL_SNAPSHOT_ALLOC;
		freed += events[i].action == SL_SNAPSHOT_FREE_COMPLETED;
	}
	for (size_t i = 0; i < r->blocks.count; i++)
		freed -= r->blocks.item[i].freed != SIZE_MAX;
	return (double)freed >= FREED_PART * (double)made;
}

uint64_t sl_snapshot_rounds(const struct sl_rebuilt *r)
{
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;
	struct tree tree = {.snapshot = r->snapshot};
	uint64_t rounds = 1;

	if (!frees(r))
		return 1;
	*SL_PUSH(&tree.nodes) = (struct node){0};
	for (size_t i = 0; i < r->events.count; i++) {
		uint32_t leaf;

		if (events[i].action != SL_SNAPSHOT_ALLOC || events[i].stack == SL_SNAPSHOT_NONE)
			continue;
		leaf = leaf_of(&tree, events[i].stack);
		if (leaf)
			ask(&tree, leaf);
	}
	rounds = rounds_in(r, &tree);
	free(tree.nodes.item);
	free(tree.leaf_of.item);
	sl_sequences_free(&tree.keys);
	return rounds;
}
