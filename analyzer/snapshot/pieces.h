/* SPDX-License-Identifier: MIT */
/* Pieces of address space, ordered by address.  One thread each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/base/arena.h"
#include "analyzer/base/tree.h"

struct sl_tile {
	struct sl_node node;
	uint64_t addr, size, requested;
	uint32_t stack;
	uint32_t group; /* pieces of one group that touch may become one */
	bool active;
	size_t event; /* the caller's */
};

/* All zeroes is empty. */
struct sl_pieces {
	struct sl_tree tree;
	struct sl_tile *unused;
	struct sl_arena arena;
};

/* Adds a piece at an address where none begins; the caller fills the rest. */
struct sl_tile *sl_pieces_add(struct sl_pieces *pieces, uint64_t addr, uint64_t size);
void sl_pieces_remove(struct sl_pieces *pieces, uint64_t addr);

struct sl_tile *sl_pieces_at(const struct sl_pieces *pieces, uint64_t addr);	 /* that begins there; NULL: none */
struct sl_tile *sl_pieces_up_to(const struct sl_pieces *pieces, uint64_t addr);	 /* the last that begins there or before */
struct sl_tile *sl_pieces_behind(const struct sl_pieces *pieces, uint64_t addr); /* the first that begins behind */
void sl_pieces_free(struct sl_pieces *pieces);
