/* SPDX-License-Identifier: MIT */
/* Which real function a wrapper calls: by name, ABI version and caller. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/event.h"

/*
 * A row has up to SL_HOOK_INSTANCES wrappers, because one process may hold several real functions of one name
 * (libcudart.so.11.0 beside .so.13): instance 0 is the exported one, which finds its real function per caller;
 * the others are handed out by look-ups, one per real function.
 */
#define SL_HOOK_INSTANCES 4

/*
 * The wrapper to hand out instead of `real`, which a look-up of the exact exported name has found (dlsym, cuGetProcAddress,
 * ...). Returns `real` itself when the name is not ours or all instances are taken.  Lock-free, any thread, also before the
 * constructor has run.
 */
void *sl_hooks_wrap(const char *name, void *real);

/* The same for a driver or HIP entry point asked for by base name and version: picks the ABI variant. */
void *sl_hooks_wrap_version(const char *base, int version, uint64_t flags, enum sl_family family, void *real);

/* The row that wraps this exported name, of any family that is looked up by name; SL_API_none if there is none. */
unsigned sl_hooks_find(const char *name);

/* True when the address is one of our wrappers. */
bool sl_hooks_is_wrapper(const void *address);

/*
 * The real function that instance `instance` of row `api` calls when it is called from `caller`; NULL: nobody provides it.  A
 * few loads where the caller is known.
 */
void *sl_hooks_real(unsigned api, unsigned instance, const void *caller);

/* hooks.c: distance from each element itself to the wrapper of instance 1, 2, 3; 0 none. */
extern const int32_t sl_hook_entries[][3] __attribute__((visibility("hidden")));
