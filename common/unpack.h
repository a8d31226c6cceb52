/* SPDX-License-Identifier: MIT */
/*
 * msgpack read where it lies: no allocation, nothing copied, any bytes.  A value that does not fit its buffer
 * is a refusal, never a read beyond it.
 */
#ifndef COMMON_UNPACK_H
#define COMMON_UNPACK_H

#include <stdbool.h>

#include "common/base.h"

struct sl_unpack {
	const uint8_t *at, *end;
};

enum sl_unpacked_type {
	SL_UNPACKED_NIL,
	SL_UNPACKED_BOOLEAN,
	SL_UNPACKED_NUMBER,
	SL_UNPACKED_FLOAT,
	SL_UNPACKED_TEXT,
	SL_UNPACKED_BIN,
	SL_UNPACKED_EXTENSION,
	SL_UNPACKED_ARRAY,
	SL_UNPACKED_MAP
};

/* The head of a value.  Of arrays and maps what is inside follows and is the caller's to read. */
struct sl_unpacked {
	enum sl_unpacked_type type;
	bool is_negative;
	uint64_t number;      /* negative ones in two's complement; of arrays the items, of maps the pairs; of booleans 0 or 1 */
	const uint8_t *bytes; /* of texts and bins; of floats 4 or 8, big-endian; of extensions the type and what follows */
	size_t size;
};

bool sl_unpack_next(struct sl_unpack *unpack, struct sl_unpacked *value);

/* Past one whole value, everything inside included. */
bool sl_unpack_skip(struct sl_unpack *unpack);

static inline bool sl_unpack_is(const struct sl_unpacked *value, const char *text)
{
	return value->type == SL_UNPACKED_TEXT && value->size == strlen(text) && !memcmp(value->bytes, text, value->size);
}

/* The value of a key of the map at `at`, which is not moved; false: it is no map, or has no such key. */
bool sl_unpack_get(struct sl_unpack at, const char *key, struct sl_unpack *value);
bool sl_unpack_number(struct sl_unpack at, const char *key, uint64_t *number);
bool sl_unpack_text_is(struct sl_unpack at, const char *key, const char *text);

#endif
