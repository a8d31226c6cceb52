/* SPDX-License-Identifier: MIT */
/*
 * Stacks that a thread had before, found by their innermost frames.
 *
 * A trail is what a walk read: the innermost return addresses, the stack pointer behind them, and the words of the stack
 * that hold all further return addresses and each saved rbp that a frame is found by.  Where the innermost frames are the
 * same and no such word has changed, the stack is the same.  To compare the words costs a tenth of a walk, because no
 * comparison waits for another.
 *
 * Belongs to one thread; a zeroed one is empty.
 */
#pragma once

#include <stdbool.h>

#include "agent/stacks/cache.h"

#define SL_TRAIL_FRAMES 9u   /* innermost frames: six of ours, three of the program's */
#define SL_TRAIL_CHECKS 320u /* words of the frames outside them; longer trails are not kept */

struct sl_trail_start {
	uint64_t pc[SL_TRAIL_FRAMES], sp; /* sp: of the frame outside these */
	uint64_t bp;			  /* bp in that frame; not part of the key */
	uint64_t hash;
};

struct sl_trail_check {
	uint64_t address, value;
};

/* Number of the stack that begins with this start and has not changed; 0: none is known. */
uint32_t sl_trails_find(struct sl_cache *trails, const struct sl_trail_start *start);

/*
 * Makes an entry with room for `most` checks, which the caller fills and then numbers (sl_trails_close).  start->bp must be
 * the same only if bp_matters.  NULL: another stack with this start is kept.
 */
struct sl_cache_entry *sl_trails_open(struct sl_cache *trails, const struct sl_trail_start *start, bool bp_matters, uint32_t most);
struct sl_trail_check *sl_trails_checks(struct sl_cache *trails, const struct sl_cache_entry *entry);
void sl_trails_close(struct sl_cache_entry *entry, uint32_t count, uint32_t id);
