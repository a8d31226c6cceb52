/* SPDX-License-Identifier: MIT */
#include "analyzer/base/map.h"

#include <stdlib.h>
#include <sys/random.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

struct sl_map_slot {
	const char *key;
	uint64_t hash;
	uintptr_t value;
};

uint64_t sl_map_seed[2];

__attribute__((constructor)) static void choose_seed(void)
{
	if (getrandom(sl_map_seed, sizeof(sl_map_seed), GRND_NONBLOCK) != sizeof(sl_map_seed)) /* too early at boot */
		sl_map_seed[0] = sl_map_seed[1] = (uint64_t)(uintptr_t)&choose_seed * 0x9e3779b97f4a7c15u;
}

static uint64_t hash_of(const char *text)
{
	return sl_map_hash(text, strlen(text));
}

static struct sl_map_slot *slot_of(struct sl_map_slot *slots, size_t capacity, const char *text, uint64_t hash)
{
	size_t at = hash & (capacity - 1);

	while (slots[at].key && (slots[at].hash != hash || strcmp(slots[at].key, text) != 0))
		at = (at + 1) & (capacity - 1);
	return &slots[at];
}

static void grow(struct sl_map *map)
{
	size_t capacity = map->capacity ? map->capacity * 2 : 64;
	struct sl_map_slot *slots = sl_memory_must(calloc(capacity, sizeof(*slots)));

	for (size_t i = 0; i < map->capacity; i++)
		if (map->slots[i].key)
			*slot_of(slots, capacity, map->slots[i].key, map->slots[i].hash) = map->slots[i];
	free(map->slots);
	map->slots = slots;
	map->capacity = capacity;
}

static struct sl_map_slot *add(struct sl_map *map, const char *text)
{
	uint64_t hash = hash_of(text);
	struct sl_map_slot *slot = map->capacity ? slot_of(map->slots, map->capacity, text, hash) : NULL;

	if (slot && slot->key)
		return slot;
	if (map->count * 2 >= map->capacity) {
		grow(map);
		slot = slot_of(map->slots, map->capacity, text, hash);
	}
	slot->key = sl_arena_strdup(&map->arena, text);
	slot->hash = hash;
	map->count++;
	return slot;
}

const char *sl_map_intern(struct sl_map *map, const char *text)
{
	return text ? add(map, text)->key : NULL;
}

uintptr_t *sl_map_at(struct sl_map *map, const char *text)
{
	return &add(map, text)->value;
}

uintptr_t sl_map_find(const struct sl_map *map, const char *text)
{
	return map->capacity ? slot_of(map->slots, map->capacity, text, hash_of(text))->value : 0;
}

const char *sl_map_next(const struct sl_map *map, size_t *at)
{
	while (*at < map->capacity)
		if (map->slots[(*at)++].key)
			return map->slots[*at - 1].key;
	return NULL;
}

const char **sl_map_sorted(const struct sl_map *map)
{
	const char **texts = sl_memory_must(calloc(map->count + 1, sizeof(*texts)));
	size_t count = 0;

	for (size_t at = 0; (texts[count] = sl_map_next(map, &at));)
		count++;
	qsort(texts, count, sizeof(*texts), sl_stats_by_text);
	return texts;
}

void sl_map_free(struct sl_map *map)
{
	free(map->slots);
	sl_arena_free(&map->arena);
	*map = (struct sl_map){0};
}
