/* SPDX-License-Identifier: MIT */
/*
 * The objects loaded in this process, never waiting for a lock that nobody will release.
 *
 * The lock of dl_iterate_phdr is not the loader's and no foreign code runs under it, but fork does not reset it: a
 * child forked while another thread held it has it for ever.  So in a forked child the loader's list is read
 * without it until a thread of its own has shown that it, and the loader's, are free.
 */
#pragma once

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base.h"

/*
 * As dl_iterate_phdr.  Any thread, any time; the program's signal handlers wait meanwhile, since one that left by
 * longjmp would keep the lock.  An object whose headers the program has made unreadable is passed over.
 */
int sl_objects_walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

/* True: a walk has met such an object. */
extern _Atomic bool sl_objects_unreadable SL_HIDDEN;

/* Looks at all objects: false, and the loader, which reads their headers to open a library, must not be called. */
bool sl_objects_are_readable(void);

struct sl_objects_span {
	uint64_t begin, end;
};

/* From an object's first segment to its last, holes between them included; end 0: it has none. */
static inline struct sl_objects_span sl_objects_span_of(const struct dl_phdr_info *info)
{
	struct sl_objects_span span = {.begin = UINT64_MAX};

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		span.begin = at < span.begin ? at : span.begin;
		span.end = at + header->p_memsz > span.end ? at + header->p_memsz : span.end;
	}
	return span;
}

/*
 * The loader's own list, the program first.  Without a lock it is safe for the objects that were loaded at start, which
 * come first and never go; the rest only inside sl_objects_walk.
 */
struct link_map *sl_objects_first(void);

/* True: the loader's locks can be taken.  False: this is a forked child that has not tried them yet (threads.h). */
bool sl_objects_trusted(void);

void sl_objects_trust(void); /* says that somebody has taken those locks, so they are free */

/* True: fork() of the C library made this process, and has reset those of its locks that making a thread takes. */
bool sl_objects_is_forked(void);

/*
 * What uses the loader's list or has it changed stands between these two, since a child that was forked meanwhile would have a lock
 * of the loader's for ever, or a loader that is half way.  fork() waits for the end, and they begin when no fork() is under way;
 * none waits for ever.  Nests.  opens: the writer opens a library, for which fork() waits as long as it works.
 */
void sl_objects_use_begin(bool opens);
void sl_objects_use_end(void);

/* Around each fork(), in the parent. */
void sl_objects_fork_begin(void);
void sl_objects_fork_end(void);

/*
 * Unloads so far (dlclose as we see it), times SL_UNLOAD; the low byte counts those under way.  What was found in an object holds
 * until this changes.
 */
#define SL_UNLOAD 256u
extern _Atomic uint64_t sl_objects_unloads SL_HIDDEN;

/* Calls of dlopen that we have seen begin. */
extern _Atomic uint64_t sl_objects_loads SL_HIDDEN;

static inline void sl_objects_unload_begin(void)
{
	atomic_fetch_add(&sl_objects_unloads, 1);
}

static inline void sl_objects_unload_end(void)
{
	atomic_fetch_add(&sl_objects_unloads, SL_UNLOAD - 1);
}

/*
 * An address found in an object, kept in one word with the low 16 bits of the number of unloads until then; zero: none.  While
 * something is being unloaded, kept addresses are not used and none is kept.
 */
static inline void *sl_objects_kept(_Atomic uint64_t *kept, uint64_t unloads)
{
	uint64_t word = atomic_load_explicit(kept, memory_order_relaxed);

	return SL_LIKELY((uint16_t)word == (uint16_t)(unloads / SL_UNLOAD) && !(unloads % SL_UNLOAD))
		       ? (void *)(uintptr_t)(word >> 16)
		       : NULL;
}

static inline void sl_objects_keep(_Atomic uint64_t *kept, const void *found, uint64_t unloads)
{
	if (!(unloads % SL_UNLOAD) && !((uintptr_t)found >> 48))
		atomic_store_explicit(kept, (uint64_t)(uintptr_t)found << 16 | (uint16_t)(unloads / SL_UNLOAD),
				      memory_order_relaxed);
}

/* Runs around each fork() from now on; other ways to fork tell nobody.  Stands for pthread_atfork.  musl has none. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object) __attribute__((weak));

/* Why calls or stacks may be missed.  Each is said once in the trace. */
enum sl_hole {
	SL_HOLE_DEEPBIND = 1,
	SL_HOLE_NAMESPACE = 2,
	SL_HOLE_PJRT_VERSION = 4,
	SL_HOLE_PJRT_TABLE = 8,
	SL_HOLE_TABLES = 16,
	SL_HOLE_TENSORFLOW = 32,
	SL_HOLE_ROOM = 64
};
void sl_objects_hole(enum sl_hole hole);
void sl_objects_say_holes(void); /* writer */

/* Call this in the library's constructor: this process image was not forked. */
void sl_objects_construct(void);

/* Call this in a child that fork() made. */
void sl_objects_forked(void);
