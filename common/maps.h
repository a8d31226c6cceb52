/* SPDX-License-Identifier: MIT */
/* MessagePack: writing it, reading it, and definitions, the maps of a trace. */
#pragma once

#include <msgpack.h>
#include <stdbool.h>

#include "common/base.h"

/* msgpack into a fixed buffer: msgpack-c's packer without its allocations. */
struct sl_pack {
	uint8_t *bytes;
	size_t size, used;
	bool failed; /* it did not fit; the buffer holds only a part of it */
};

static inline struct sl_pack sl_pack_begin(void *bytes, size_t size)
{
	return (struct sl_pack){.bytes = bytes, .size = size};
}

static inline int sl_pack_append(void *data, const char *bytes, size_t count)
{
	struct sl_pack *pack = data;

	if (pack->failed || count > pack->size - pack->used) {
		pack->failed = true;
		return -1;
	}
	memcpy(pack->bytes + pack->used, bytes, count);
	pack->used += count;
	return 0;
}

static inline msgpack_packer sl_pack_packer(struct sl_pack *pack)
{
	return (msgpack_packer){.data = pack, .callback = sl_pack_append};
}

static inline void sl_pack_map(struct sl_pack *pack, size_t pairs)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_map(&pk, pairs);
}

static inline void sl_pack_array(struct sl_pack *pack, size_t items)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_array(&pk, items);
}

static inline void sl_pack_bytes(struct sl_pack *pack, const char *text, size_t size)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_str(&pk, size);
	msgpack_pack_str_body(&pk, text, size);
}

static inline void sl_pack_text(struct sl_pack *pack, const char *text)
{
	sl_pack_bytes(pack, text, strlen(text));
}

static inline void sl_pack_uint(struct sl_pack *pack, uint64_t value)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_uint64(&pk, value);
}

static inline void sl_pack_int(struct sl_pack *pack, int64_t value)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_int64(&pk, value);
}

static inline void sl_pack_nil(struct sl_pack *pack)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_nil(&pk);
}

/*
 * Reads msgpack in place: no allocation, no copy, any input.  A value that does not fit its buffer is refused and never read
 * past its end.
 */

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

/*
 * Definitions of a trace (doc/trace-format.md): msgpack maps in a fixed buffer, whose first pair says what they define and whose
 * pairs are counted as they are added.  What does not fit fails as a whole.
 */

/* Most bytes of a Python function's name, and of its file or the text of a range; longer ones are cut. */
#define SL_FUNCTION_MAX 1024u
#define SL_TEXT_MAX	4096u

struct sl_definition {
	struct sl_pack pack;
	unsigned pairs;
};

struct sl_definition sl_definition_begin(void *bytes, size_t size, const char *kind);

/* True: the map is pack.bytes, pack.used of them.  False: it did not fit. */
bool sl_definition_end(struct sl_definition *map);

/* Adds the key; the caller packs its value next. */
void sl_definition_key(struct sl_definition *map, const char *key);

void sl_definition_text(struct sl_definition *map, const char *key, const char *value);
void sl_definition_bytes(struct sl_definition *map, const char *key, const char *value, size_t size);
void sl_definition_uint(struct sl_definition *map, const char *key, uint64_t value);
void sl_definition_int(struct sl_definition *map, const char *key, int64_t value);

/* NULL, "" and negative numbers mean unknown and become nil. */
void sl_definition_maybe_text(struct sl_definition *map, const char *key, const char *value);
void sl_definition_maybe_int(struct sl_definition *map, const char *key, int64_t value);

/* The definitions that the agent and stormlog-attach both write.  removed: the events of a gap had been recorded, and are gone. */
struct sl_definition sl_definition_note(void *bytes, size_t size, const char *text, uint64_t now_ns);
struct sl_definition sl_definition_gap(void *bytes, size_t size, uint64_t count, uint64_t begin_ns, uint64_t end_ns,
				       const char *why, bool removed);
struct sl_definition sl_definition_thread(void *bytes, size_t size, uint32_t id, int tid, const char *name, uint64_t now_ns);
struct sl_definition sl_definition_loop(void *bytes, size_t size, uint32_t id, uint64_t begin, uint64_t end);

/* pcs: return addresses, of 64 bits, innermost first. */
struct sl_definition sl_definition_native(void *bytes, size_t size, uint32_t id, const void *pcs, uint32_t count, bool truncated);

/* What a frame says of itself, utf-8.  0 bytes, no positive line: not known. */
struct sl_python_text {
	const char *function, *file;
	size_t function_bytes, file_bytes;
	int line, first_line;
};

/*
 * True: the interpreter's own code, from 3.13 on, that looks at what __init__ returned; it lies between __init__ and who called the
 * class, once that call has become warm.  Python's tracebacks lack it too.  And the functions of a dry run that compute
 * values: the program does not have them.
 */
bool sl_definition_is_hidden(const struct sl_python_text *text);

struct sl_definition sl_definition_frame(void *bytes, size_t size, uint32_t id, const struct sl_python_text *text);

#define SL_PYTHON_ENTERED 0x80000000u /* with a frame's id: C entered the loop with this frame */

/* frames: their ids, innermost first. */
struct sl_definition sl_definition_python(void *bytes, size_t size, uint32_t id, const uint32_t *frames, uint32_t count,
					  bool truncated);
