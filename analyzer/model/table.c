/* SPDX-License-Identifier: MIT */
#include "analyzer/model/table.h"

void sl_table_grow(struct sl_table *table)
{
	struct sl_table bigger = {.mask = table->slot ? table->mask * 2 + 1 : 63};

	bigger.shift = (unsigned)__builtin_clzll(bigger.mask);
	bigger.slot = calloc(bigger.mask + 1, sizeof(*bigger.slot));
	if (!bigger.slot)
		abort();
	SL_TABLE_EACH(table, entry)
	{
		struct sl_live *now = sl_table_add(&bigger, entry->address);

		*now = *entry;
	}
	free(table->slot);
	*table = bigger;
}
