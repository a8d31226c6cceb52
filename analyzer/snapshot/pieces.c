/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/pieces.h"

#include <stdlib.h>

#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"

#define CHUNK 1000

struct sl_pieces_chunk {
	struct sl_pieces_chunk *before;
	struct sl_tile pieces[CHUNK];
};

static struct sl_tile *fresh(struct sl_pieces *pieces)
{
	struct sl_tile *piece = pieces->unused;

	if (!piece) {
		struct sl_pieces_chunk *chunk = sl_memory_must(malloc(sizeof(*chunk)));

		chunk->before = pieces->chunks;
		pieces->chunks = chunk;
		for (size_t i = 0; i < CHUNK; i++) {
			chunk->pieces[i].more = piece;
			piece = &chunk->pieces[i];
		}
	}
	pieces->unused = piece->more;
	return piece;
}

/* Parts a tree: pieces below `addr`, and those at or above it. */
static void part(struct sl_tile *tree, uint64_t addr, struct sl_tile **less, struct sl_tile **more)
{
	while (tree)
		if (tree->addr < addr) {
			*less = tree;
			less = &tree->more;
			tree = tree->more;
		} else {
			*more = tree;
			more = &tree->less;
			tree = tree->less;
		}
	*less = *more = NULL;
}

static struct sl_tile *join(struct sl_tile *less, struct sl_tile *more)
{
	struct sl_tile *root, **at = &root;

	while (less && more)
		if (less->priority > more->priority) {
			*at = less;
			at = &less->more;
			less = less->more;
		} else {
			*at = more;
			at = &more->less;
			more = more->less;
		}
	*at = less ? less : more;
	return root;
}

struct sl_tile *sl_pieces_add(struct sl_pieces *pieces, uint64_t addr, uint64_t size)
{
	struct sl_tile *piece = fresh(pieces), **at = &pieces->root;

	*piece = (struct sl_tile){.addr = addr, .size = size, .priority = (uint32_t)sl_map_mix(addr)};
	while (*at && (*at)->priority >= piece->priority)
		at = addr < (*at)->addr ? &(*at)->less : &(*at)->more;
	part(*at, addr, &piece->less, &piece->more);
	*at = piece;
	pieces->count++;
	return piece;
}

void sl_pieces_remove(struct sl_pieces *pieces, uint64_t addr)
{
	struct sl_tile **at = &pieces->root, *piece;

	while (*at && (*at)->addr != addr)
		at = addr < (*at)->addr ? &(*at)->less : &(*at)->more;
	piece = *at;
	if (!piece)
		return;
	*at = join(piece->less, piece->more);
	piece->more = pieces->unused;
	pieces->unused = piece;
	pieces->count--;
}

struct sl_tile *sl_pieces_at(const struct sl_pieces *pieces, uint64_t addr)
{
	struct sl_tile *piece = sl_pieces_up_to(pieces, addr);

	return piece && piece->addr == addr ? piece : NULL;
}

struct sl_tile *sl_pieces_up_to(const struct sl_pieces *pieces, uint64_t addr)
{
	struct sl_tile *found = NULL;

	for (struct sl_tile *at = pieces->root; at;)
		if (at->addr <= addr) {
			found = at;
			at = at->more;
		} else {
			at = at->less;
		}
	return found;
}

struct sl_tile *sl_pieces_behind(const struct sl_pieces *pieces, uint64_t addr)
{
	struct sl_tile *found = NULL;

	for (struct sl_tile *at = pieces->root; at;)
		if (at->addr > addr) {
			found = at;
			at = at->less;
		} else {
			at = at->more;
		}
	return found;
}

void sl_pieces_free(struct sl_pieces *pieces)
{
	while (pieces->chunks) {
		struct sl_pieces_chunk *before = pieces->chunks->before;

		free(pieces->chunks);
		pieces->chunks = before;
	}
	*pieces = (struct sl_pieces){0};
}
