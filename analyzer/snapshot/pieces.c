/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/pieces.h"

#include "analyzer/base/stats.h"

static int compare_pieces(const void *one, const void *other)
{
	const struct sl_tile *a = one, *b = other;

	return SL_RISING(a->addr, b->addr);
}

struct sl_tile *sl_pieces_add(struct sl_pieces *pieces, uint64_t addr, uint64_t size)
{
	struct sl_tile *piece = pieces->unused;

	if (piece)
		pieces->unused = (struct sl_tile *)piece->node.more;
	else
		piece = sl_arena_alloc(&pieces->arena, sizeof(*piece));
	*piece = (struct sl_tile){.addr = addr, .size = size};
	pieces->tree.compare = compare_pieces;
	sl_tree_add(&pieces->tree, piece);
	return piece;
}

void sl_pieces_remove(struct sl_pieces *pieces, uint64_t addr)
{
	struct sl_tile *piece = sl_pieces_at(pieces, addr);

	if (!piece)
		return;
	sl_tree_remove(&pieces->tree, piece);
	piece->node.more = (struct sl_node *)pieces->unused;
	pieces->unused = piece;
}

struct sl_tile *sl_pieces_at(const struct sl_pieces *pieces, uint64_t addr)
{
	struct sl_tile *piece = sl_pieces_up_to(pieces, addr);

	return piece && piece->addr == addr ? piece : NULL;
}

struct sl_tile *sl_pieces_up_to(const struct sl_pieces *pieces, uint64_t addr)
{
	return sl_tree_up_to(&pieces->tree, &(struct sl_tile){.addr = addr});
}

struct sl_tile *sl_pieces_behind(const struct sl_pieces *pieces, uint64_t addr)
{
	return sl_tree_after(&pieces->tree, &(struct sl_tile){.addr = addr});
}

void sl_pieces_free(struct sl_pieces *pieces)
{
	sl_arena_free(&pieces->arena);
	*pieces = (struct sl_pieces){0};
}
