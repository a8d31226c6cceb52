/* SPDX-License-Identifier: MIT */
/*
 * The real function behind a wrapper, and who called it, without a call that takes the loader's lock:
 * dl_iterate_phdr and a look-up of ours in each object's own hash table (DT_GNU_HASH, DT_HASH).
 * No allocation; any thread; also from constructors and signal handlers, before our own constructor ran.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The function `name` as an object that calls it from `caller` would have found it without us: the first
 * object of the start-up set behind us in link order, else the first in the DT_NEEDED closure of the caller's
 * object, else any; of the symbol version that the caller's object asks for.  NULL: nobody provides it.
 * Takes microseconds: the caller of this function caches.
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
 * The first definition of `name` in link order before us and behind `after` (NULL: from the program on): what
 * the dynamic linker finds instead of our wrapper.
 */
void *sl_resolve_before_us(const char *name, const struct link_map *after);

/*
 * `name` in the scope of an object loaded by dlopen: the closure of an object whose closure contains `caller`.
 * version may be NULL.
 */
void *sl_resolve_in_group(const char *name, const char *version, const void *caller);

/* True when some object is loaded around the address. */
bool sl_resolve_loaded(const void *address);
