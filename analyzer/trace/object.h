/* SPDX-License-Identifier: MIT */
/*
 * Reading msgpack maps that a stranger may have written, by common/unpack.h into the objects of msgpack-c.  Counts and depth
 * are held against the bytes that are there before memory is taken for them; texts and bins point into the bytes parsed.
 */
#ifndef ANALYZER_TRACE_OBJECT_H
#define ANALYZER_TRACE_OBJECT_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_NAME_MAX (16u << 10) /* bytes of a name: what is longer is cut */

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

/* False for NULL, which is what sl_object_get gives where nothing is. */
bool sl_object_is_text(const msgpack_object *object, const char *text);
bool sl_object_number(const msgpack_object *object, uint64_t *value);

#endif
