/* SPDX-License-Identifier: MIT */
#include "analyzer/model/state/model.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

#define LOOKS	   65536 /* entries that are looked at before the index is made, and LOOKS_EACH for each event */
#define LOOKS_EACH 16
#define LEAST	   64

struct sl_by_context {
	struct sl_idmap ids; /* key -> index into lists */
	SL_VECTOR(struct sl_by_context_list) lists;
};

uint64_t sl_by_context_owner(const struct sl_model *model, const struct sl_live *live)
{
	(void)model;
	return live->owner;
}

/* Drops entries that left the table or belong to another context by now, and duplicates. */
static void clean(struct sl_by_context_list *list, const struct sl_table *table, const struct sl_model *model,
		  sl_by_context_key *key_of, uint64_t key)
{
	size_t live_count = 0;

	if (list->addresses.count)
		qsort(list->addresses.item, list->addresses.count, sizeof(uint64_t), sl_stats_by_number);
	for (size_t i = 0; i < list->addresses.count; i++) {
		uint64_t address = list->addresses.item[i];
		const struct sl_live *live = sl_table_find(table, address);

		if (live && key_of(model, live) == key && !(live_count && list->addresses.item[live_count - 1] == address))
			list->addresses.item[live_count++] = address;
	}
	list->addresses.count = list->clean = live_count;
}

static struct sl_by_context_list *list_of(struct sl_by_context *tied, uint64_t key)
{
	uint32_t at = sl_idmap_claim(&tied->ids, key, tied->lists.count);

	if (at == tied->lists.count)
		*SL_PUSH(&tied->lists) = (struct sl_by_context_list){0};
	return &tied->lists.item[at];
}

void sl_by_context_add(struct sl_table *table, const struct sl_model *model, sl_by_context_key *key_of, const struct sl_live *live)
{
	struct sl_by_context_list *list;

	if (!table->tied)
		return;
	list = list_of(table->tied, key_of(model, live));
	*SL_PUSH(&list->addresses) = live->address;
	if (list->addresses.count > 2 * list->clean + LEAST)
		clean(list, table, model, key_of, key_of(model, live));
}

struct sl_by_context_list sl_by_context_take(struct sl_table *table, const struct sl_model *model, sl_by_context_key *key_of,
					     uint64_t key)
{
	struct sl_by_context_list found = {0};
	uint32_t at;

	if (!table->count)
		return found;
	if (!table->tied && (table->looks += table->mask) > LOOKS + LOOKS_EACH * model->events) {
		table->tied = sl_memory_must(calloc(1, sizeof(*table->tied)));
		SL_TABLE_EACH(table, live)
		sl_by_context_add(table, model, key_of, live);
	}
	if (!table->tied) {
		SL_TABLE_EACH(table, live)
		if (key_of(model, live) == key)
			*SL_PUSH(&found.addresses) = live->address;
		return found;
	}
	at = sl_idmap_get(&table->tied->ids, key, UINT32_MAX);
	if (at == UINT32_MAX)
		return found;
	found = table->tied->lists.item[at];
	table->tied->lists.item[at] = (struct sl_by_context_list){0};
	clean(&found, table, model, key_of, key);
	return found;
}

void sl_by_context_free(struct sl_table *table)
{
	for (size_t i = 0; table->tied && i < table->tied->lists.count; i++)
		free(table->tied->lists.item[i].addresses.item);
	if (table->tied) {
		free(table->tied->lists.item);
		sl_idmap_free(&table->tied->ids);
	}
	free(table->tied);
	sl_table_free(table);
}
