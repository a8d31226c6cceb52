/* SPDX-License-Identifier: MIT */
/*
 * A recording that sleeps: calls are recorded without stacks, and the writer writes none of them.  A block that came and went
 * becomes two counts.  Calls with a lasting effect are kept in memory until the recording is woken, so that the file then
 * replays to exactly what lives.  Nothing is modelled here: a call that is not plainly an allocation or its free is kept.
 *
 * Woken by the word in the ring's header (stormlog-attach), by a call that ran out of memory, by a device that is nearly full.
 *
 * Writer thread only, but for sl_asleep_rouse and sl_asleep_is.  No allocation but pages, reserved when it falls asleep.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/event.h"

/* When a recording begins, in a forked child too: whether it begins asleep. */
void sl_asleep_begin(bool asleep);

bool sl_asleep_is(void);

/* Wake at the writer's next pass; why: a static text.  Any thread. */
void sl_asleep_rouse(const char *why);

/* True: somebody has asked for the other state. */
bool sl_asleep_asked_to_wake(void);
bool sl_asleep_asked_to_rest(void);

/* The file is up to date: from now on events go to sl_asleep_take. */
void sl_asleep_rest(void);

/* Is there room for SL_BLOCK_EVENTS more?  False: write first. */
bool sl_asleep_has_room(void);

/* Finished events of one thread, in slot order, of slots from `first` on. */
void sl_asleep_take(uint32_t thread, uint64_t first, const struct sl_event *events, unsigned count);

/* Everything that took effect until then has been taken. */
void sl_asleep_settle(uint64_t until_ns);

/* Is it time to write?  Nothing was written for long, or much is kept in memory. */
bool sl_asleep_is_due(uint64_t now_ns);

/* Writes events of one thread as one block; false: it could not. */
typedef bool sl_asleep_write(uint32_t thread, uint64_t first, uint64_t next, struct sl_event *events, unsigned count);

/*
 * Write what is kept, and what was only counted as one `slept` map (doc/trace-format.md); then go on awake if `wake`, else
 * asleep.  `events` has room for SL_BLOCK_EVENTS, `map` for SL_BLOCK_BYTES of them; `write` may use both.
 */
bool sl_asleep_flush(const char *why, bool wake, struct sl_event *events, uint8_t *map, sl_asleep_write *write);
