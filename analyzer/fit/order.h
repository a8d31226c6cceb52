/* SPDX-License-Identifier: MIT */
/*
 * An ordered set of blocks, as PyTorch's std::set<Block*>.  It is a treap whose links are in the blocks, so adding and removing
 * need no memory.  Free blocks are ordered by stream, size, age and address, unmapped ones by stream and address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_fit_range;
struct sl_fit_pool;

/* A piece of a segment: allocated, waiting for its streams, free, or (expandable segments) without memory. */
struct sl_fit_block {
	struct sl_fit_block *less, *more; /* links of the set it is in, or of the list of those that wait */
	struct sl_fit_block *prev, *next; /* neighbours in its segment */
	uint64_t address, bytes, requested;
	uint64_t age;		    /* decides between equal blocks before the address does; 0: not used */
	int64_t gc_base;	    /* the pool's count of searches when the block became free */
	struct sl_fit_range *range; /* the expandable segment; NULL: an ordinary one */
	struct sl_fit_pool *pool;   /* the set it is in while it is free */
	uint32_t priority;
	uint32_t id; /* while it waits: the caller's */
	uint16_t stream;
	bool small, allocated, pending, unmapped;
};

/* All zeroes is empty. */
struct sl_fit_order {
	struct sl_fit_block *root;
	bool by_address;
};

void sl_fit_order_add(struct sl_fit_order *order, struct sl_fit_block *block);
void sl_fit_order_remove(struct sl_fit_order *order, struct sl_fit_block *block);
/* The first block not before `key` (stream, bytes, address); NULL: none. */
struct sl_fit_block *sl_fit_order_from(const struct sl_fit_order *order, const struct sl_fit_block *key);
/* after, before: neighbours of a block, or of the place where it was, in the order; first: of all; NULL: none. */
struct sl_fit_block *sl_fit_order_after(const struct sl_fit_order *order, const struct sl_fit_block *block);
struct sl_fit_block *sl_fit_order_before(const struct sl_fit_order *order, const struct sl_fit_block *block);
struct sl_fit_block *sl_fit_order_first(const struct sl_fit_order *order);
