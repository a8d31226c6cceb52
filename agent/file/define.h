/* SPDX-License-Identifier: MIT */
/* The crash-safe log of definitions.  Any thread, lock-free, async-signal-safe: safe on the path of a call. */
#pragma once

#include "common/definition.h"

/*
 * Ends the definition and publishes a copy of it, before any event that names it.  False: it does not fit, or nothing records (then
 * use id 0).
 */
bool sl_define_publish(struct sl_definition *map);

/* Publishes a gap: events between two instants that were lost. */
bool sl_define_gap(uint64_t count, uint64_t begin_ns, uint64_t end_ns, const char *why, bool removed);

/* Publishes a line about the recording itself: what is not recorded and why. */
void sl_define_note(const char *text);

/* The writer: notes that definitions found no room, if so.  Segments of the log have room for that at their end. */
void sl_define_cut(void);
