/* SPDX-License-Identifier: MIT */
/*
 * A map from a 64-bit id to a 32-bit value: open addressing, linear probing, no removal.  All zeroes is an empty map.  Ids that
 * are added one after the other, from `first` on, with the values 0, 1, 2... need no slots.
 */
#pragma once

#include <stdlib.h>

#include "analyzer/base/map.h"

struct sl_idmap_slot {
	uint64_t id;
	uint32_t value, used;
};

struct sl_idmap {
	struct sl_idmap_slot *slot;
	uint32_t mask, count;
	uint64_t first; /* number of ids that need no slots */
};

/* A hash that is the same in every process: for output, never for a place in a table. */
static inline uint64_t sl_idmap_hash(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

/* The value of an id, or `none`. */
static inline uint32_t sl_idmap_get(const struct sl_idmap *map, uint64_t id, uint32_t none)
{
	if (!map->slot)
		return id - map->first < map->count ? (uint32_t)(id - map->first) : none;
	for (uint32_t i = (uint32_t)sl_map_mix(id) & map->mask;; i = (i + 1) & map->mask) {
		if (!map->slot[i].used)
			return none;
		if (map->slot[i].id == id)
			return map->slot[i].value;
	}
}

void sl_idmap_set(struct sl_idmap *map, uint64_t id, uint32_t value);

/* The value of an id; one that is new gets `next`.  For lists: where the value is the list's length, its item is to be added. */
static inline uint32_t sl_idmap_claim(struct sl_idmap *map, uint64_t id, size_t next)
{
	uint32_t value = sl_idmap_get(map, id, UINT32_MAX);

	if (value == UINT32_MAX)
		sl_idmap_set(map, id, value = (uint32_t)next);
	return value;
}

void sl_idmap_free(struct sl_idmap *map);
