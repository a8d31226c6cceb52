/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/object.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16

#define ITEMS_MAX (4u << 20) /* of one object: msgpack-c takes 24 bytes for each, of one byte in the file */

struct cursor {
	const uint8_t *at, *end;
	uint32_t items;
};

static bool take(struct cursor *c, unsigned bytes, uint64_t *value)
{
	*value = 0;
	if ((size_t)(c->end - c->at) < bytes)
		return false;
	while (bytes--)
		*value = *value << 8 | *c->at++;
	return true;
}

static bool step(struct cursor *c, uint64_t bytes)
{
	if ((uint64_t)(c->end - c->at) < bytes)
		return false;
	c->at += bytes;
	return true;
}

static bool check(struct cursor *c, unsigned depth);

/* Most items are a small number or a short text. */
static bool step_small(struct cursor *c)
{
	uint8_t tag = c->at < c->end ? *c->at : 0xc1;
	size_t bytes = tag <= 0x7f ? 1 : tag >= 0xa0 && tag <= 0xbf ? 1 + (tag & 31u) : 0;

	if (!bytes || (size_t)(c->end - c->at) < bytes)
		return false;
	c->at += bytes;
	return true;
}

static bool check_items(struct cursor *c, uint64_t items, unsigned depth)
{
	if (items > (uint64_t)(c->end - c->at) || !depth || items > ITEMS_MAX - c->items)
		return false;
	c->items += (uint32_t)items;
	while (items--)
		if (!step_small(c) && !check(c, depth - 1))
			return false;
	return true;
}

/* One object is whole, and holds no more items than bytes. */
static bool check(struct cursor *c, unsigned depth)
{
	uint64_t tag, n;

	if (!take(c, 1, &tag))
		return false;
	if (tag <= 0x7f || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3)
		return true;
	if (tag <= 0x8f)
		return check_items(c, (tag & 15) * 2, depth);
	if (tag <= 0x9f)
		return check_items(c, tag & 15, depth);
	if (tag <= 0xbf)
		return step(c, tag & 31);
	switch (tag) {
	case 0xc4:
	case 0xc5:
	case 0xc6: /* bin */
		return take(c, 1u << (tag - 0xc4), &n) && step(c, n);
	case 0xc7:
	case 0xc8:
	case 0xc9: /* ext */
		return take(c, 1u << (tag - 0xc7), &n) && step(c, n + 1);
	case 0xca:
		return step(c, 4);
	case 0xcb:
		return step(c, 8);
	case 0xcc:
	case 0xcd:
	case 0xce:
	case 0xcf:
		return step(c, 1u << (tag - 0xcc));
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return step(c, 1u << (tag - 0xd0));
	case 0xd4:
	case 0xd5:
	case 0xd6:
	case 0xd7:
	case 0xd8: /* fixext */
		return step(c, (1u << (tag - 0xd4)) + 1);
	case 0xd9:
	case 0xda:
	case 0xdb:
		return take(c, 1u << (tag - 0xd9), &n) && step(c, n);
	case 0xdc:
	case 0xdd:
		return take(c, tag == 0xdc ? 2 : 4, &n) && check_items(c, n, depth);
	case 0xde:
	case 0xdf:
		return take(c, tag == 0xde ? 2 : 4, &n) && check_items(c, n * 2, depth);
	}
	return false;
}

bool sl_object_parse(msgpack_object *object, msgpack_zone *zone, const void *bytes, size_t size, size_t *at)
{
	struct cursor c = {(const uint8_t *)bytes + *at, (const uint8_t *)bytes + size};
	size_t whole, offset = 0;
	const char *start = (const char *)c.at;

	if (!check(&c, DEPTH_MAX))
		return false;
	whole = (size_t)((const char *)c.at - start);
	if (msgpack_unpack(start, whole, &offset, zone, object) < 0)
		return false;
	*at += whole;
	return true;
}

bool sl_object_is_text(const msgpack_object *object, const char *text)
{
	size_t size = strlen(text);

	return object && object->type == MSGPACK_OBJECT_STR && object->via.str.size == size &&
	       !memcmp(object->via.str.ptr, text, size);
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
