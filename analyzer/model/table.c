/* SPDX-License-Identifier: MIT */
#include "analyzer/model/table.h"

#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"

static void remake(struct sl_table *table, uint64_t mask, uint64_t seed)
{
	struct sl_table bigger = {
		.mask = mask, .looks = table->looks, .tied = table->tied, .shift = (unsigned)__builtin_clzll(mask), .seed = seed};

	bigger.slot = sl_memory_must(calloc(bigger.mask + 1, sizeof(*bigger.slot)));
	SL_TABLE_EACH(table, entry)
	{
		struct sl_live *now = sl_table_add(&bigger, entry->address);

		*now = *entry;
	}
	free(table->slot);
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
