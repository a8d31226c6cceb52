/* SPDX-License-Identifier: MIT */
/*
 * Parses msgpack maps that may be hostile: reads with common/unpack.h and makes msgpack-c's objects.  Counts and depth are
 * compared with the bytes present before memory is allocated for them.  Texts and bins point into the parsed bytes.
 */
#pragma once

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SL_NAME_MAX (16u << 10) /* longest name in bytes; longer ones are cut (definition.h has shorter limits for some) */

struct sl_span {
	const char *text; /* NULL: absent */
	size_t size;
};

/*
 * The next object at *at; *at moves behind it.  False at the end and where the bytes are no whole object
 * (*at < size then).  The object lives in `zone` until that is cleared.
 */
bool sl_object_parse(msgpack_object *object, msgpack_zone *zone, const void *bytes, size_t size, size_t *at);

/* The value of a key, NULL when it is absent, nil, or `map` is no map. */
const msgpack_object *sl_object_get(const msgpack_object *map, const char *key);

/* A number, or `unknown` when it is absent or of another type. */
uint64_t sl_object_u64(const msgpack_object *map, const char *key, uint64_t unknown);
int64_t sl_object_i64(const msgpack_object *map, const char *key, int64_t unknown);
struct sl_span sl_object_text(const msgpack_object *map, const char *key);

/* False for NULL, which sl_object_get returns where nothing is.  Here, so that the length of a constant text is constant. */
static inline bool sl_object_is_text(const msgpack_object *object, const char *text)
{
	size_t size = strlen(text);

	return object && object->type == MSGPACK_OBJECT_STR && object->via.str.size == size &&
	       !memcmp(object->via.str.ptr, text, size);
}

bool sl_object_number(const msgpack_object *object, uint64_t *value);
