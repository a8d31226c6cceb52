/* SPDX-License-Identifier: MIT */
/*
 * The hook table: every call the agent wraps, one row each in hooks/<interface>.def (see doc/add-a-hook.md).
 * hooks.c expands the rows into ids, names, wrappers and look-up tables.
 */
#ifndef AGENT_HOOKS_H
#define AGENT_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event.h"

struct sl_hook {
	const char *name; /* exported symbol */
	uint8_t verb, kind, family;
	bool recorded; /* false: look-ups, queries, calls wrapped for --limit alone */
};

extern const struct sl_hook sl_hooks[];	 /* [0] is none; ids are indexes */
extern const unsigned sl_hook_count;

/*
 * A row has up to SL_HOOK_INSTANCES wrappers, because one process may hold several real functions of one name
 * (libcudart.so.11.0 beside .so.13): instance 0 is the exported one, which finds its real function per caller;
 * the others are handed out by look-ups, one per real function.
 */
#define SL_HOOK_INSTANCES 4

/*
 * The wrapper to hand out instead of `real`, found by a look-up (dlsym, cuGetProcAddress, ...) of the exact
 * exported name; `real` itself when the name is not ours or all instances are taken (counted, and noted in the
 * trace).  Lock-free, any thread, also before the constructor ran.
 */
void *sl_hooks_wrap(const char *name, void *real);

/* As above for a driver or HIP entry point asked by base name and version: picks the ABI variant. */
void *sl_hooks_wrap_version(const char *base, int version, uint64_t flags, enum sl_family family, void *real);

/* True when the address is one of our wrappers. */
bool sl_hooks_is_wrapper(const void *address);

/* Look-ups refused because no instance was left, for the footer. */
unsigned sl_hooks_unwrapped(void);

#endif
