/* SPDX-License-Identifier: MIT */
/* Maps texts to a word of the caller's, and keeps one copy of each text.  One thread per map. */
#pragma once

#include "analyzer/base/arena.h"
#include "common/base.h"

/*
 * Hashes are mixed with two random numbers of this process.  Otherwise a hostile trace could put everything into one list of a
 * table and make each search as long as the table.  Nothing that is written may depend on these numbers.
 */
extern uint64_t sl_map_seed[2];

static inline uint64_t sl_map_mix(uint64_t x)
{
	return sl_mix(x ^ sl_map_seed[0], sl_map_seed[1] | 1);
}

static inline uint64_t sl_map_mix_two(uint64_t x, uint64_t y)
{
	return sl_mix(x ^ sl_map_seed[0], y ^ sl_map_seed[1]);
}

static inline uint64_t sl_map_hash(const void *bytes, size_t size)
{
	const char *at = bytes;
	uint64_t hash = size, word;

	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = sl_map_mix(hash ^ word);
	}
	word = 0;
	memcpy(&word, at, size);
	return size ? sl_map_mix(hash ^ word) : hash;
}

struct sl_map_slot;

/* All zeroes is an empty map. */
struct sl_map {
	struct sl_arena arena;
	struct sl_map_slot *slots;
	size_t count, capacity;
};

/* The map's own copy of the text: the same pointer for equal texts.  NULL stays NULL. */
const char *sl_map_intern(struct sl_map *map, const char *text);

/* The word that belongs to a text, 0 at first; valid until the next addition. */
uintptr_t *sl_map_at(struct sl_map *map, const char *text);

/* The word, or 0 where the text is not in the map. */
uintptr_t sl_map_find(const struct sl_map *map, const char *text);

/* Iterates over the texts, in no order: the next one; NULL behind the last.  *at is 0 at first.  Nothing is added meanwhile. */
const char *sl_map_next(const struct sl_map *map, size_t *at);

/* All texts, sorted; the list is the caller's to free. */
const char **sl_map_sorted(const struct sl_map *map);

void sl_map_free(struct sl_map *map);
