/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/idmap.h"

#include "analyzer/base/memory.h"

static void place(struct sl_idmap *map, uint64_t id, uint32_t value)
{
	uint32_t i = (uint32_t)sl_map_mix(id) & map->mask;

	while (map->slot[i].used && map->slot[i].id != id)
		i = (i + 1) & map->mask;
	map->count += !map->slot[i].used;
	map->slot[i] = (struct sl_idmap_slot){id, value, 1};
}

static void grow(struct sl_idmap *map)
{
	struct sl_idmap bigger = {.mask = map->slot ? map->mask * 2 + 1 : 63};

	while (map->count >= bigger.mask / 4 * 3)
		bigger.mask = bigger.mask * 2 + 1;
	bigger.slot = sl_memory_must(calloc((size_t)bigger.mask + 1, sizeof(*bigger.slot)));
	for (uint32_t i = 0; map->slot && i <= map->mask; i++)
		if (map->slot[i].used)
			place(&bigger, map->slot[i].id, map->slot[i].value);
	for (uint32_t i = 0; !map->slot && i < map->count; i++)
		place(&bigger, map->first + i, i);
	free(map->slot);
	*map = bigger;
}

void sl_idmap_set(struct sl_idmap *map, uint64_t id, uint32_t value)
{
	if (!map->slot && value == map->count && (!map->count || id == map->first + map->count)) {
		map->first = map->count++ ? map->first : id;
		return;
	}
	if (!map->slot || map->count >= map->mask / 4 * 3)
		grow(map);
	place(map, id, value);
}

void sl_idmap_free(struct sl_idmap *map)
{
	free(map->slot);
	*map = (struct sl_idmap){0};
}
