/* SPDX-License-Identifier: MIT */
/*
 * Live blocks by address: open addressing, linear probing, removal by shifting back, no allocation per block.
 * One table per space of addresses, since a handle may equal a pointer.  Address 0 is never stored.  Pointers to
 * entries are valid until the next add or remove.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "analyzer/model/state/extents.h"
#include "common/base.h"

enum sl_live_flag {
	SL_LIVE_TORCH = 1,    /* a segment of PyTorch's allocator */
	SL_LIVE_POOL = 4,     /* a segment of another framework's allocator, or a block in one */
	SL_LIVE_ALONE = 8,    /* a pool's block outside of all memory of the driver: host memory */
	SL_LIVE_GRAPH = 32,   /* a segment in a private pool of CUDA graphs, or a block of PyTorch's in one */
	SL_LIVE_HANDLE = 16,  /* a pool's block that is named by a handle: its address is not known */
	SL_LIVE_LAUNCHED = 2, /* graph memory made by a launch: it outlives the graph */
};

struct sl_live {
	uint64_t address; /* 0: empty */
	uint64_t bytes, time_ns;
	uint64_t
		owner; /* context; graph memory: the graph; a mapping: index of its physical memory; a pool: the most it may hold */
	uint32_t site;
	uint32_t refs;
	uint32_t flags;
	uint32_t thread;
};
_Static_assert(sizeof(struct sl_live) == 48, "the cost of a live block");

struct sl_by_context;
struct sl_table {
	struct sl_live *slot;
	uint64_t mask;
	uint64_t count;
	uint64_t looks; /* entries of others that were looked at (by_context.h) */
	struct sl_by_context *tied;
	void *order; /* where entries begin (extents.h), kept from the first search on */
	bool ordered;
	unsigned shift; /* 64 - log2(slots) */
	uint64_t
		/* 0 until many addresses collide, as in hostile traces only; so honest traces have the same order in every run */
		seed;
};

static inline uint64_t sl_table_home(const struct sl_table *table, uint64_t address)
{
	return ((address ^ table->seed) * 0x9e3779b97f4a7c15ull) >> table->shift;
}

static inline struct sl_live *sl_table_find(const struct sl_table *table, uint64_t address)
{
	if (!table->count)
		return NULL;
	for (uint64_t i = sl_table_home(table, address); table->slot[i].address; i = (i + 1) & table->mask)
		if (table->slot[i].address == address)
			return &table->slot[i];
	return NULL;
}

#define SL_TABLE_GATHERED 4096 /* entries passed in one look-up; a table seven eighths full has runs of hundreds */

void sl_table_seed(struct sl_table *table); /* places every entry anew */
void sl_table_grow(struct sl_table *table);
void sl_table_order(struct sl_table *table, uint64_t address);
void sl_table_disorder(struct sl_table *table, uint64_t address);

/* Adds an entry, zeroed except for its address, which must not be in the table yet. */
static inline struct sl_live *sl_table_add(struct sl_table *table, uint64_t address)
{
	uint64_t i, home;

	if (!table->slot || table->count >= table->mask - table->mask / 8)
		sl_table_grow(table);
	for (i = home = sl_table_home(table, address); table->slot[i].address;)
		i = (i + 1) & table->mask;
	if (SL_UNLIKELY(((i - home) & table->mask) > SL_TABLE_GATHERED && !table->seed)) {
		sl_table_seed(table);
		return sl_table_add(table, address);
	}
	if (SL_UNLIKELY(table->ordered))
		sl_table_order(table, address);
	table->count++;
	table->slot[i] = (struct sl_live){.address = address};
	return &table->slot[i];
}

static inline void sl_table_remove(struct sl_table *table, struct sl_live *entry)
{
	uint64_t hole = (uint64_t)(entry - table->slot);

	if (SL_UNLIKELY(table->ordered))
		sl_table_disorder(table, entry->address);
	for (uint64_t i = (hole + 1) & table->mask; table->slot[i].address; i = (i + 1) & table->mask) {
		uint64_t home = sl_table_home(table, table->slot[i].address);

		if (((i - home) & table->mask) < ((i - hole) & table->mask))
			continue; /* it would move before its own slot */
		table->slot[hole] = table->slot[i];
		hole = i;
	}
	table->slot[hole].address = 0;
	table->count--;
}

/* The first entry that begins in the range; NULL: none. `range` then becomes the rest behind that begin. */
struct sl_live *sl_table_next(struct sl_table *table, struct sl_extent *range);

/*
 * The entry in which the address lies.  Entries do not overlap; in a damaged trace, where they do, the last that begins before
 * it counts.
 */
struct sl_live *sl_table_around(struct sl_table *table, uint64_t address);

/* for (each live entry): the table must not change inside. */
#define SL_TABLE_EACH(table, entry)                                                                                                \
	for (struct sl_live *entry = (table)->slot; (table)->slot && entry <= (table)->slot + (table)->mask; entry++)              \
		if (entry->address)

void sl_table_free(struct sl_table *table);
