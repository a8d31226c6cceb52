/* SPDX-License-Identifier: MIT */
/*
 * Blocks in order: PyTorch's std::set<Block*>.  A treap, whose links lie in the blocks: adding and removing cost
 * no memory.  Free blocks are ordered by stream, size, age and address, unmapped ones by stream and address.
 */
#ifndef ANALYZER_FIT_ORDER_H
#define ANALYZER_FIT_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_fit_range;

/* A piece of a segment: handed out, waiting for its streams, free, or (expandable) without memory behind it. */
struct sl_fit_block {
	struct sl_fit_block *less, *more; /* of the order it is in */
	struct sl_fit_block *prev, *next; /* in its segment */
	uint64_t address, bytes, requested;
	uint64_t age;		    /* decides between equals before the address does; 0: it does not */
	int64_t gc_base;	    /* the pool's count of searches when it became free */
	struct sl_fit_range *range; /* of an expandable segment; NULL: its segment is one of the driver's blocks */
	uint32_t priority;
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
/* The first that is not before `key` (stream, bytes, address); NULL: none. */
struct sl_fit_block *sl_fit_order_from(const struct sl_fit_order *order, const struct sl_fit_block *key);
/* Neighbours in the order of a block that is or was in it; first of a key without block; NULL: none. */
struct sl_fit_block *sl_fit_order_after(const struct sl_fit_order *order, const struct sl_fit_block *block);
struct sl_fit_block *sl_fit_order_before(const struct sl_fit_order *order, const struct sl_fit_block *block);
struct sl_fit_block *sl_fit_order_first(const struct sl_fit_order *order);

#endif
