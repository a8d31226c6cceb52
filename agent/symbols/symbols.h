/* SPDX-License-Identifier: MIT */
/* The objects loaded in this process and their functions. */
#pragma once

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base.h"

/*
 * Which objects an object needs, by the DT_NEEDED of all of them: asked only where several provide the same name.
 * For use inside dl_iterate_phdr, so that nothing comes or goes.  Objects are numbered in link order, the program is 0.
 */

struct sl_needed_node;

struct sl_needed {
	struct sl_needed_node *nodes;
	unsigned count;
	uint32_t *queue; /* objects that were reached, in the loader's order: breadth first */
	unsigned queued;
};

/* What the walks of resolve.c share. */
struct sl_elf_object;

/*
 * The objects loaded in this process, never waiting for a lock that nobody will release.
 *
 * The lock of dl_iterate_phdr is not the loader's and no foreign code runs under it, but fork does not reset it: a
 * child forked while another thread held it has it for ever.  So in a forked child the loader's list is read
 * without it until a thread of its own has shown that it, and the loader's, are free.
 */

/*
 * As dl_iterate_phdr.  Any thread, any time; the program's signal handlers wait meanwhile, since one that left by
 * longjmp would keep the lock.
 */
int sl_objects_walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

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

/* True: the loader's locks can be taken.  False: this is a forked child that has not tried them yet (threads.c). */
bool sl_objects_trusted(void);

void sl_objects_trust(void); /* says that somebody has taken those locks, so they are free */

/* True: fork() of the C library made this process, and has reset those of its locks that making a thread takes. */
bool sl_objects_is_forked(void);

/*
 * Code that uses the loader's list, or has it changed, calls these two around its work.  A child that is forked meanwhile would
 * have a lock of the loader for ever, or a loader that is half way.  So fork() waits for the end, and a use waits for a fork(),
 * each for a limited time.  Nests.  opens: the writer opens a library, and fork() waits as long as it works.
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
static inline void *sl_objects_kept(_Atomic uint64_t *cached, uint64_t unloads)
{
	uint64_t word = atomic_load_explicit(cached, memory_order_relaxed);

	return SL_LIKELY((uint16_t)word == (uint16_t)(unloads / SL_UNLOAD) && !(unloads % SL_UNLOAD))
		       ? (void *)(uintptr_t)(word >> 16)
		       : NULL;
}

static inline void sl_objects_keep(_Atomic uint64_t *cached, const void *found, uint64_t unloads)
{
	if (!(unloads % SL_UNLOAD) && !((uintptr_t)found >> 48))
		atomic_store_explicit(cached, (uint64_t)(uintptr_t)found << 16 | (uint16_t)(unloads / SL_UNLOAD),
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

/*
 * The real function behind a wrapper, and its caller.  No call takes the loader's lock: dl_iterate_phdr lists the objects, and we
 * search each object's own hash table (DT_GNU_HASH, DT_HASH). No allocation; any thread; also from constructors and signal
 * handlers, before our own constructor ran.
 */

/*
 * The function `name` that the object of `caller` would have found without us.  It is in the first object of the start-up set
 * behind us in link order, else in the first of the DT_NEEDED closure of the caller's object, else in any.  It has the symbol
 * version that the caller's object asks for.  NULL: no object has it.  Takes microseconds: the caller of this function caches.
 */
void *sl_resolve_for(const char *name, const void *caller);

/* `name` in any loaded object other than ours; NULL if none. */
void *sl_resolve_symbol(const char *name);

/* Any loaded object's `name` other than ours; prefers the object with this soname prefix if not NULL. */
void *sl_resolve_in(const char *soname_prefix, const char *name);

/* `name` in the object that contains `address`; NULL if it does not define it. */
void *sl_resolve_beside(const void *address, const char *name);

/*
 * What RTLD_NEXT called by us means, for functions of the C library: the next object behind us in link order
 * that defines `name`.  Takes no lock at all, so it is for vfork children and forked ones too.
 */
void *sl_resolve_next(const char *name);

/* True: an object behind us defines it.  All are looked at, so others may come and go meanwhile. */
bool sl_resolve_is_behind_us(const char *name);

/* The glibc dlsym and dlvsym themselves, or the next interposer's. */
void *sl_resolve_dlsym(void);
void *sl_resolve_dlvsym(void);

/* Our own path, as the loader's messages name it; NULL unknown. */
const char *sl_resolve_own_name(void);

/* The object around an address. */
struct sl_resolve_place {
	struct link_map *map; /* NULL: in no object.  No handle: only what dlopen returned is one */
	bool program, driver; /* the main program; libcuda.so */
	bool before_us;	      /* comes before us in link order: the program, earlier preloads */
};
struct sl_resolve_place sl_resolve_place(const void *address);

/*
 * The first definition of `name` in link order before us and behind `after` (NULL: from the program on).  The dynamic linker finds
 * it instead of our wrapper.
 */
void *sl_resolve_before_us(const char *name, const struct link_map *after);

/*
 * `name` in the scope of an object loaded by dlopen: the closure of an object whose closure contains `caller`.
 * version may be NULL.
 */
void *sl_resolve_in_group(const char *name, const char *version, const void *caller);

/* True when some object is loaded around the address. */
bool sl_resolve_loaded(const void *address);

/* Recognizes programs whose runtime does not end by the C library (Go): their end is not seen. */

/* True: the program ends by the system call exit_group itself, past the C library, as Go programs do. */
bool sl_runtime_leaves_by_call(void);

/* Runtimes of sanitizers (ASan, TSan, MSan, LSan) in the program, which take the C library's place in much that it does. */

/*
 * True: a sanitizer's runtime is there, or valgrind.  Then we open no library, because the runtime judges what the library does
 * as if the program did it, misjudges thread-local memory that came later, and is gone when a library's destructors of a
 * thread run.
 */
bool sl_sanitizers_present(void);

/*
 * True: ThreadSanitizer's.  It counts threads: a child of a process with more than one can make none, and an exit waits a second.
 */
bool sl_sanitizers_of_threads(void);

/* Names under which libtensorflow_framework.so.2 exports its allocator.  namespace: "3tsl" from 2.9 on, "10tensorflow" before. */

#define SL_TENSORFLOW_ALLOCATE(namespace) "_ZN" namespace "12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE"
#define SL_TENSORFLOW_FREE(namespace)	  "_ZN" namespace "12BFCAllocator13DeallocateRawEPv"

/*
 * Finds out whether a forked child can make threads: another thread of its parent may have held a lock that making one takes.
 */

/*
 * Makes a thread that takes the loader's locks, and waits for it for 20 ms at most.  If the thread got them, sl_objects_trusted
 * is true.  False: no thread can be made here.  Where making one might wait for ever, a copy of this process tries it first.
 */
bool sl_threads_try(void);

/* The thread that sl_threads_try made is still there.  It may wait as long as the process lives.  Writer. */
bool sl_threads_trying(void);
