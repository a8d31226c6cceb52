/* SPDX-License-Identifier: MIT */
/* What the rooms of the agent may ask of its core.  All of it is safe on the path of a call. */
#ifndef AGENT_FILE_DEFINE_H
#define AGENT_FILE_DEFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Publish one definition (one msgpack map, complete) in the crash-safe log, before any event that names it.
 * Any thread, lock-free, async-signal-safe; copies.  False: no room or recording stopped (then use id 0).
 */
bool sl_define(const void *map, size_t bytes);

/*
 * Real function of this name in any loaded object other than ours, found by walking the object's own hash
 * tables (no loader lock); NULL if none.
 */
void *sl_resolve_symbol(const char *name);

/* Zeroed pages that live as long as the process, from mmap; NULL if refused. */
void *sl_pages(size_t bytes);

/* Events that could not be kept, between two instants. */
bool sl_gap(uint64_t count, uint64_t begin_ns, uint64_t end_ns, const char *why);

/* What this recording can and cannot: a `capability` map; the last one of a name holds. */
void sl_capability(const char *name, const char *value);

/* One line about the recording itself, into the trace: what is not recorded and why. */
void sl_note(const char *text);

#endif
