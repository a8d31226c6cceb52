/* SPDX-License-Identifier: MIT */
#include "analyzer/model/state/parts.h"

#include "analyzer/base/memory.h"

static void remake(struct sl_table *table, uint64_t mask, uint64_t seed)
{
	struct sl_table bigger = {.mask = mask, .shift = (unsigned)__builtin_clzll(mask), .seed = seed};

	bigger.slot = sl_memory_must(calloc(mask + 1, sizeof(*bigger.slot)));
	SL_TABLE_EACH(table, entry)
	*sl_table_add(&bigger, entry->address) = *entry;
	free(table->slot);
	bigger.looks = table->looks;
	bigger.tied = table->tied;
	bigger.order = table->order;
	bigger.ordered = table->ordered;
	*table = bigger;
}

void sl_table_grow(struct sl_table *table)
{
	remake(table, table->slot ? table->mask * 2 + 1 : 63, table->seed);
}

void sl_table_seed(struct sl_table *table)
{
	remake(table, table->mask, sl_map_seed[0] | 1);
}

void sl_table_order(struct sl_table *table, uint64_t address)
{
	struct sl_extent *begin = sl_memory_must(malloc(sizeof(*begin)));

	*begin = (struct sl_extent){.address = address, .bytes = 1};
	sl_extents_add(&table->order, begin);
}

void sl_table_disorder(struct sl_table *table, uint64_t address)
{
	struct sl_extent *begin = sl_tree_up_to(&table->order, &(struct sl_extent){.address = address});

	sl_tree_remove(&table->order, begin);
	free(begin);
}

static void put_in_order(struct sl_table *table)
{
	if (table->ordered)
		return;
	table->ordered = true;
	SL_TABLE_EACH(table, entry)
	sl_table_order(table, entry->address);
}

struct sl_live *sl_table_next(struct sl_table *table, struct sl_extent *range)
{
	const struct sl_extent *begin;

	put_in_order(table);
	begin = sl_extents_next(&table->order, range);
	return begin ? sl_table_find(table, begin->address) : NULL;
}

struct sl_live *sl_table_around(struct sl_table *table, uint64_t address)
{
	const struct sl_extent *begin;
	struct sl_live *live;

	put_in_order(table);
	begin = sl_tree_up_to(&table->order, &(struct sl_extent){.address = address});
	live = begin ? sl_table_find(table, begin->address) : NULL;
	return live && address - live->address < live->bytes ? live : NULL;
}

void sl_table_free(struct sl_table *table)
{
	sl_extents_free(&table->order);
	free(table->slot);
	*table = (struct sl_table){0};
}
