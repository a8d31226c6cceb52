/* SPDX-License-Identifier: MIT */
/*
 * The real function behind a wrapper, and who called it, without a call that takes the loader's lock:
 * dl_iterate_phdr and a look-up of ours in each object's own hash table (DT_GNU_HASH, DT_HASH).
 * No allocation; any thread; also from constructors and signal handlers.
 */
#ifndef AGENT_RESOLVE_H
#define AGENT_RESOLVE_H

#include <stddef.h>

/*
 * The function `name` as an object that calls it from `caller` would have found it without us: an object of
 * the start-up set that comes first in link order, else one in the DT_NEEDED closure of the caller's object,
 * else any.  NULL: nobody provides it.
 */
void *sl_resolve_for(const char *name, const void *caller);

/* Any loaded object's `name` other than ours; prefers the object with this soname prefix if not NULL. */
void *sl_resolve_in(const char *soname_prefix, const char *name);

/* The glibc dlsym and dlvsym themselves. */
void *sl_resolve_dlsym(void);
void *sl_resolve_dlvsym(void);

#endif
