/* SPDX-License-Identifier: MIT */
/* The crash-safe log of definitions.  Any thread, lock-free, async-signal-safe: safe on the path of a call. */
#ifndef AGENT_FILE_DEFINE_H
#define AGENT_FILE_DEFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Publish one definition (one msgpack map, complete) before any event that names it; copies.  False: there is no room, or
 * nothing records (then use id 0).
 */
bool sl_define_publish(const void *map, size_t bytes);

/* Events that could not be kept, between two instants. */
bool sl_define_gap(uint64_t count, uint64_t begin_ns, uint64_t end_ns, const char *why);

/* One line about the recording itself: what is not recorded and why. */
void sl_define_note(const char *text);

#endif
