/* SPDX-License-Identifier: MIT */
/*
 * Definitions of a trace (doc/trace-format.md): msgpack maps in a fixed buffer, whose first pair says what they define and whose
 * pairs are counted as they are added.  What does not fit fails as a whole.
 */
#pragma once

#include "common/pack.h"

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
