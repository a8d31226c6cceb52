/* SPDX-License-Identifier: MIT */
/* Texts to numbers: one copy of each text, and a word of the owner's beside it. One thread per map. */
#ifndef ANALYZER_BASE_MAP_H
#define ANALYZER_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "analyzer/base/arena.h"

/*
 * Numbers and texts of a trace are a stranger's: whoever knew where they land could make every search as long as the table.  So they are
 * mixed with two numbers that are this process's own.  Nothing that is written may depend on them.
 */
extern uint64_t sl_map_seed[2];

static inline uint64_t sl_map_mix(uint64_t x)
{
	unsigned __int128 product = (unsigned __int128)(x ^ sl_map_seed[0]) * (sl_map_seed[1] | 1);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

struct sl_map_slot;

/* All zeroes is an empty map. */
struct sl_map {
	struct sl_arena arena;
	struct sl_map_slot *slots;
	size_t count, capacity;
};

/* The map's own copy of the text, the same pointer for equal texts; NULL stays NULL. */
const char *sl_map_intern(struct sl_map *map, const char *text);

/* The word beside a text, 0 at first; valid until the next addition. */
uintptr_t *sl_map_at(struct sl_map *map, const char *text);

/* The word, or 0 where the text was never added. */
uintptr_t sl_map_find(const struct sl_map *map, const char *text);

/* One text after the other, in no order: that number `at`; NULL behind the last. */
const char *sl_map_key(const struct sl_map *map, size_t at);

void sl_map_free(struct sl_map *map);

#endif
