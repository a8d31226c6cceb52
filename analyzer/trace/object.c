/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/parts.h"

#include "analyzer/base/memory.h"
#include "common/maps.h"

enum { DEPTH_MAX = 16 };

#define ITEMS_MAX (4u << 20) /* items of one object: each takes 24 bytes of memory but only one in the file */

struct reader {
	struct sl_unpack at;
	msgpack_zone *zone;
	uint32_t items;
};

static double real(const struct sl_unpacked *value)
{
	uint64_t bits = 0;
	uint32_t half;
	double wide;
	float narrow;

	for (size_t i = 0; i < value->size; i++)
		bits = bits << 8 | value->bytes[i];
	half = (uint32_t)bits;
	memcpy(&narrow, &half, sizeof(narrow));
	memcpy(&wide, &bits, sizeof(wide));
	return value->size == sizeof(narrow) ? (double)narrow : wide;
}

static bool read_object(struct reader *r, msgpack_object *object, unsigned depth);

/* Reads the items of an array, or of a map, whose pairs are stored as items. */
static msgpack_object *read_items(struct reader *r, uint64_t items, unsigned depth)
{
	msgpack_object *item;

	if (!depth || items > (uint64_t)(r->at.end - r->at.at) || items > ITEMS_MAX - r->items)
		return NULL;
	r->items += (uint32_t)items;
	item = sl_memory_must(msgpack_zone_malloc(r->zone, (items + !items) * sizeof(*item)));
	for (uint64_t i = 0; i < items; i++)
		if (!read_object(r, &item[i], depth - 1))
			return NULL;
	return item;
}

static bool read_object(struct reader *r, msgpack_object *object, unsigned depth)
{
	struct sl_unpacked value;

	if (!sl_unpack_next(&r->at, &value))
		return false;
	switch (value.type) {
	case SL_UNPACKED_NIL:
		object->type = MSGPACK_OBJECT_NIL;
		return true;
	case SL_UNPACKED_BOOLEAN:
		object->type = MSGPACK_OBJECT_BOOLEAN;
		object->via.boolean = value.number != 0;
		return true;
	case SL_UNPACKED_NUMBER:
		object->type = value.is_negative ? MSGPACK_OBJECT_NEGATIVE_INTEGER : MSGPACK_OBJECT_POSITIVE_INTEGER;
		object->via.u64 = value.number;
		return true;
	case SL_UNPACKED_FLOAT:
		object->type = value.size == 4 ? MSGPACK_OBJECT_FLOAT32 : MSGPACK_OBJECT_FLOAT64;
		object->via.f64 = real(&value);
		return true;
	case SL_UNPACKED_TEXT:
	case SL_UNPACKED_BIN:
		object->type = value.type == SL_UNPACKED_TEXT ? MSGPACK_OBJECT_STR : MSGPACK_OBJECT_BIN;
		object->via.str = (msgpack_object_str){.size = (uint32_t)value.size, .ptr = (const char *)value.bytes};
		return true;
	case SL_UNPACKED_EXTENSION:
		object->type = MSGPACK_OBJECT_EXT;
		object->via.ext = (msgpack_object_ext){
			.type = (int8_t)value.bytes[0], .size = (uint32_t)value.size - 1, .ptr = (const char *)value.bytes + 1};
		return true;
	case SL_UNPACKED_ARRAY:
		object->type = MSGPACK_OBJECT_ARRAY;
		object->via.array.size = (uint32_t)value.number;
		return (object->via.array.ptr = read_items(r, value.number, depth)) != NULL;
	case SL_UNPACKED_MAP:
		object->type = MSGPACK_OBJECT_MAP;
		object->via.map.size = (uint32_t)value.number;
		return (object->via.map.ptr = (msgpack_object_kv *)read_items(r, value.number * 2, depth)) != NULL;
	}
	return false;
}

_Static_assert(sizeof(msgpack_object_kv) == 2 * sizeof(msgpack_object), "a pair is two objects");

bool sl_object_parse(msgpack_object *object, msgpack_zone *zone, const void *bytes, size_t size, size_t *at)
{
	const uint8_t *begin = bytes;
	struct reader r = {.at = {begin + *at, begin + size}, .zone = zone};

	if (!read_object(&r, object, DEPTH_MAX))
		return false;
	*at = (size_t)(r.at.at - begin);
	return true;
}

const msgpack_object *sl_object_get(const msgpack_object *map, const char *key)
{
	size_t size = strlen(key);

	if (map->type != MSGPACK_OBJECT_MAP)
		return NULL;
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];

		if (kv->key.type == MSGPACK_OBJECT_STR && kv->key.via.str.size == size && !memcmp(kv->key.via.str.ptr, key, size))
			return kv->val.type == MSGPACK_OBJECT_NIL ? NULL : &kv->val;
	}
	return NULL;
}

bool sl_object_number(const msgpack_object *object, uint64_t *value)
{
	if (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		*value = object->via.u64;
	else if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		*value = (uint64_t)object->via.i64;
	else
		return false;
	return true;
}

uint64_t sl_object_u64(const msgpack_object *map, const char *key, uint64_t unknown)
{
	const msgpack_object *object = sl_object_get(map, key);
	uint64_t value;

	return object && sl_object_number(object, &value) ? value : unknown;
}

int64_t sl_object_i64(const msgpack_object *map, const char *key, int64_t unknown)
{
	return (int64_t)sl_object_u64(map, key, (uint64_t)unknown);
}

struct sl_span sl_object_text(const msgpack_object *map, const char *key)
{
	const msgpack_object *object = sl_object_get(map, key);

	if (!object || (object->type != MSGPACK_OBJECT_STR && object->type != MSGPACK_OBJECT_BIN))
		return (struct sl_span){NULL, 0};
	return (struct sl_span){object->via.str.ptr, object->via.str.size};
}
