/* SPDX-License-Identifier: MIT */
/* What the wrappers of hooks.c ask of the table: the real function behind an instance. */
#ifndef AGENT_HOOKS_TABLE_H
#define AGENT_HOOKS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/event.h"

/*
 * The real function that instance `instance` of row `api` forwards to when called from `caller`; NULL: nobody
 * provides it.  A few loads where the caller has been here before.
 */
void *sl_hook_real(unsigned api, unsigned instance, const void *caller);

/*
 * True when --limit is on.  The first query of a process looks for the setting in the environment and starts the
 * recording only where it is set: a program may ask for the free memory before it allocates any.
 */
bool sl_hook_limited(void);

/* An answer about memory, clamped to the limit; device -1: the current one.  Pointers to 64 bits, or NULL. */
void sl_hook_clamp(enum sl_family family, int device, void *free_bytes, void *total_bytes);

/* hooks.c: distances from the element itself to the wrapper of instance 1, 2, 3; 0 none. */
extern const int32_t sl_hook_entries[][3] __attribute__((visibility("hidden")));

#endif
