/* SPDX-License-Identifier: MIT */
/* A msgpack map whose number of keys is known only at its end, such as the header of a trace. */
#ifndef COMMON_KEYED_H
#define COMMON_KEYED_H

#include "common/pack.h"

struct sl_keyed {
	struct sl_pack pack;
	unsigned keys;
};

static inline struct sl_keyed sl_keyed_begin(void *bytes, size_t size)
{
	static const char head[3] = {(char)0xde, 0, 0}; /* a map 16; sl_keyed_end fills in its size */
	struct sl_keyed map = {.pack = sl_pack_begin(bytes, size)};

	sl_pack_append(&map.pack, head, sizeof(head));
	return map;
}

/* Bytes of the map; 0: it did not fit. */
static inline size_t sl_keyed_end(struct sl_keyed *map)
{
	if (map->pack.failed)
		return 0;
	map->pack.bytes[1] = (uint8_t)(map->keys >> 8);
	map->pack.bytes[2] = (uint8_t)map->keys;
	return map->pack.used;
}

/* Adds the key; the caller packs its value next. */
static inline void sl_keyed_key(struct sl_keyed *map, const char *name)
{
	map->keys++;
	sl_pack_text(&map->pack, name);
}

/* NULL and "" mean unknown: nothing is added. */
static inline void sl_keyed_text(struct sl_keyed *map, const char *name, const char *value)
{
	sl_keyed_key(map, name);
	if (value && *value)
		sl_pack_text(&map->pack, value);
	else
		sl_pack_nil(&map->pack);
}

static inline void sl_keyed_number(struct sl_keyed *map, const char *name, uint64_t value)
{
	sl_keyed_key(map, name);
	sl_pack_uint(&map->pack, value);
}

/* -1 means unknown: nothing is added. */
static inline void sl_keyed_integer(struct sl_keyed *map, const char *name, int value)
{
	sl_keyed_key(map, name);
	if (value < 0)
		sl_pack_nil(&map->pack);
	else
		sl_pack_int(&map->pack, value);
}

#endif
