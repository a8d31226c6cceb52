/* SPDX-License-Identifier: MIT */
/*
 * A recording that sleeps: calls are recorded without stacks, and the writer writes none of them.  A block that came and went
 * becomes two counts.  Calls with a lasting effect are kept in memory until the recording is woken, so that the file then replays
 * to exactly what lives.  Nothing is modelled here: a call that is not plainly an allocation or its free is kept.
 *
 * It is woken by the word in the ring's header (stormlog-attach), by a call that ran out of memory, or by a device that is nearly
 * full.
 *
 * Writer thread only, except sl_asleep_rouse and sl_asleep_is.  Allocates only pages, reserved when it falls asleep.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/event.h"

/* Called when a recording begins, in a forked child too. asleep: it begins asleep. */
void sl_asleep_begin(bool asleep);

bool sl_asleep_is(void);

/* Wakes the recording at the writer's next pass. why: a static text.  Any thread. */
void sl_asleep_rouse(const char *why);

/* True: a change of state was asked for. */
bool sl_asleep_asked_to_wake(void);
bool sl_asleep_asked_to_rest(void);

/* Falls asleep: the file is up to date, and from now on events go to sl_asleep_take. */
void sl_asleep_rest(void);

/* True: there is room for SL_BLOCK_EVENTS more.  False: write first. */
bool sl_asleep_has_room(void);

/* Takes finished events of one thread, in the order of their slots, from slot `first` on. */
void sl_asleep_take(uint32_t thread, uint64_t first, const struct sl_event *events, unsigned count);

/* Awake: gives those of one thread's events whose call began asleep the stack of what was made asleep. */
void sl_asleep_mark(struct sl_event *events, unsigned count);

/* Notes that all events up to this time have been taken. */
void sl_asleep_settle(uint64_t until_ns);

/* True: it is time to write, because the last write was long ago, or much is kept in memory. */
bool sl_asleep_is_due(uint64_t now_ns);

/* Writes events of one thread as one block; false: it could not. */
typedef bool sl_asleep_write(uint32_t thread, uint64_t first, uint64_t next, struct sl_event *events, unsigned count);

/*
 * Writes what is kept, and a `slept` map with what was counted (doc/trace-format.md); then goes on awake if `wake`, else asleep.
 * `events` has room for SL_BLOCK_EVENTS, `map` for SL_BLOCK_BYTES of them; `write` may use both.
 */
bool sl_asleep_flush(const char *why, bool wake, struct sl_event *events, uint8_t *map, sl_asleep_write *write);
