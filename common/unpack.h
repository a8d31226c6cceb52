/* SPDX-License-Identifier: MIT */
/*
 * Reads msgpack in place: no allocation, no copy, any input.  A value that does not fit its buffer is refused and never read
 * past its end.
 */
#pragma once

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

/* Reads the head of a value.  Items of arrays and maps follow it; the caller reads them. */
struct sl_unpacked {
	enum sl_unpacked_type type;
	bool is_negative;
	uint64_t number;      /* integers (negative in two's complement); arrays: items; maps: pairs; booleans: 0 or 1 */
	const uint8_t *bytes; /* texts and bins; floats: 4 or 8 bytes, big-endian; extensions: the type byte and the data */
	size_t size;
};

bool sl_unpack_next(struct sl_unpack *unpack, struct sl_unpacked *value);

/* Moves past one whole value with everything inside it. */
bool sl_unpack_skip(struct sl_unpack *unpack);

static inline bool sl_unpack_is(const struct sl_unpacked *value, const char *text)
{
	return value->type == SL_UNPACKED_TEXT && value->size == strlen(text) && !memcmp(value->bytes, text, value->size);
}

/* Finds the value of a key in the map at `at`, which does not move.  False: not a map, or no such key. */
bool sl_unpack_get(struct sl_unpack at, const char *key, struct sl_unpack *value);
bool sl_unpack_number(struct sl_unpack at, const char *key, uint64_t *number);
bool sl_unpack_text_is(struct sl_unpack at, const char *key, const char *text);
