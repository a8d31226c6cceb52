/* SPDX-License-Identifier: MIT */
/*
 * The hook table: every call the agent wraps, one row each in hooks/<interface>.def (see doc/add-a-hook.md).
 * hooks.c expands the rows into ids, names, wrappers and look-up tables.
 */
#ifndef AGENT_HOOKS_HOOKS_H
#define AGENT_HOOKS_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

/* Ids of rows: SL_API_cudaMalloc.  A second meaning of a call has its tag behind: SL_API_cuGraphAddNode_free. */
enum sl_api {
	SL_API_none,
#include "agent/hooks/verbs.h"
#define ROW(verb, kind, ret, name, ...)	 SL_API_##name,
#define ALSO(verb, kind, ret, name, tag) SL_API_##name##_##tag,
#define LOOKUP(ret, name, ...)		 SL_API_##name,
#define QUERY(ret, name, ...)		 SL_API_##name,
#define RANGE(verb, ret, name, ...)	 SL_API_##name,
#define INJECTED(ret, name, ...)	 SL_API_##name,
#define HAND(verb, kind, id, name)	 SL_API_##id,
#include "agent/hooks/all.def"
#include "agent/hooks/verbs.h"
	SL_API_COUNT
};

struct sl_hook {
	char name[60]; /* exported symbol; in place, so that the table needs no relocation; a row is a cache line */
	uint8_t verb, kind, family;
	bool recorded; /* false: look-ups, queries, calls wrapped for --limit alone */
};

extern const struct sl_hook sl_hooks[] SL_OURS; /* [0] is none; ids are indexes */
extern const unsigned sl_hook_count;		/* SL_API_COUNT */

/*
 * A row has up to SL_HOOK_INSTANCES wrappers, because one process may hold several real functions of one name
 * (libcudart.so.11.0 beside .so.13): instance 0 is the exported one, which finds its real function per caller;
 * the others are handed out by look-ups, one per real function.
 */
#define SL_HOOK_INSTANCES 4

/*
 * The wrapper to hand out instead of `real`, found by a look-up (dlsym, cuGetProcAddress, ...) of the exact
 * exported name; `real` itself when the name is not ours or all instances are taken (counted by
 * sl_hooks_unwrapped).  Lock-free, any thread, also before the constructor ran.
 */
void *sl_hooks_wrap(const char *name, void *real);

/* As above for a driver or HIP entry point asked by base name and version: picks the ABI variant. */
void *sl_hooks_wrap_version(const char *base, int version, uint64_t flags, enum sl_family family, void *real);

/* Row that wraps this exported name, SL_API_none if there is none; of any family that is looked up by name. */
unsigned sl_hooks_find(const char *name);

/* Row of the ABI variant that a driver hands out for this request. */
unsigned sl_hooks_find_version(const char *base, int version, uint64_t flags, enum sl_family family);

/* True when the address is one of our wrappers. */
bool sl_hooks_is_wrapper(const void *address);

/* Look-ups refused because no instance was left, for the footer. */
unsigned sl_hooks_unwrapped(void);

#endif
