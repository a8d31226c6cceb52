/* SPDX-License-Identifier: MIT */
/* What all files of this room share: definitions as objects, mapped images, names of files, damage. */
#pragma once

#include <msgpack.h>

#include "analyzer/base/map.h"
#include "analyzer/base/vector.h"
#include "common/event.h"

/*
 * Parses msgpack maps that may be hostile: reads with common/maps.h and makes msgpack-c's objects.  Counts and depth are
 * compared with the bytes present before memory is allocated for them.  Texts and bins point into the parsed bytes.
 */

#define SL_NAME_MAX (16u << 10) /* longest name in bytes; longer ones are cut (common/maps.h has shorter limits for some) */

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

/*
 * Says which object lies at an address of a traced process at one moment.  An object that comes where another one was gets
 * addresses of its own: their upper bits count the objects that moved before it.  So an address means one thing in a trace.
 */

#define SL_MAPPED_BITS	48     /* of an address as the process had it */
#define SL_MAPPED_MOVED 0x7fff /* as many can move; a place with this number has nothing any more */

/* The address as the process had it. */
#define SL_MAPPED_REAL(address) ((address) & ((1ull << SL_MAPPED_BITS) - 1))

struct sl_mapped_range {
	uint64_t begin, end;
	uint32_t object; /* the caller's number for what is there */
	uint32_t moved;	 /* 0: its addresses are as the process had them */
};

/* Sorted, without overlap; all zeroes is an empty one.  The owner frees .item. */
struct sl_mapped {
	SL_VECTOR(struct sl_mapped_range) list;
};

/* Puts `place`, and cuts away what overlapped it. */
void sl_mapped_put(struct sl_mapped *mapped, const struct sl_mapped_range *place);

/* The address as the trace means it. */
uint64_t sl_mapped_address(const struct sl_mapped *mapped, uint64_t address);

/*
 * Collects what could not be read, with file and offset.  Damage ends nothing: readers add a line and go on.  One list per
 * process image, one thread at a time.
 */

#define SL_DAMAGE_LINES 64 /* further lines are only counted */

struct sl_damage {
	unsigned count, lines;
	char *line[SL_DAMAGE_LINES];
	bool damaged;	      /* parts are missing or unreadable; notes alone leave it false */
	bool readable;	      /* damaged, but all that was written can be read: the recorder says itself what it lost */
	uint64_t lost_events; /* known to be lost */
};

/* Something is missing: adds "FILE: offset N: ...".  file NULL: without a place. */
void sl_damage_add(struct sl_damage *damage, const char *file, int64_t offset, const char *format, ...) SL_PRINTF(4, 5);

/* The same of what the recorder could not keep, and says so: nothing that was written is unreadable. */
void sl_damage_lost(struct sl_damage *damage, const char *file, const char *format, ...) SL_PRINTF(3, 4);

/* Adds a note; nothing is missing. */
void sl_damage_note(struct sl_damage *damage, const char *file, const char *format, ...) SL_PRINTF(3, 4);

/* Prints its lines on stderr. */
void sl_damage_print(const struct sl_damage *damage);

void sl_damage_free(struct sl_damage *damage);

/* Names of a process's files: rank-00003-41237.msgpack.zst, later segments rank-00003-41237.000002.msgpack.zst, and its .ring. */
bool sl_images_is_ring(const char *name);

/* True when the name is one of a trace file or a ring. */
bool sl_images_is_trace(const char *name);

/* True when the name is one of a pack (archive.c). */
bool sl_images_is_pack(const char *name);

/*
 * True when the name is one that snapshots of PyTorch's have: snapshot.pickle, .pkl, and those with .gz, .zst, .xz behind.  Other
 * files have such names, too.
 */
bool sl_images_may_be_snapshot(const char *name);

/* Which of its process's files a path names: 1, 2, ... */
unsigned sl_images_segment(const char *path);

/* The stack of a call, as the definitions of its trace number it; symbols/symbols.h makes frames of it. */

/* All 0: unknown. */
struct sl_stack {
	uint64_t caller; /* the address that the call returned to */
	uint32_t python, native;
};

static inline struct sl_stack sl_stack_of(const struct sl_event *event)
{
	return (struct sl_stack){event->caller, (uint32_t)event->python, (uint32_t)event->native};
}

static inline bool sl_stack_same(struct sl_stack a, struct sl_stack b)
{
	return a.caller == b.caller && a.python == b.python && a.native == b.native;
}

static inline bool sl_stack_known(struct sl_stack stack)
{
	return stack.caller || stack.python || stack.native;
}

static inline uint64_t sl_stack_mix(struct sl_stack stack)
{
	return sl_map_mix_two(stack.caller, (uint64_t)stack.python << 32 | stack.native);
}
