/* SPDX-License-Identifier: MIT */
/*
 * Stacks that a thread had before, found by their innermost frames.
 *
 * A trail is what a walk came by: the innermost return addresses, the stack pointer behind them, and the words of the stack that
 * hold all further return addresses and each saved rbp that a frame is found by.  Where the innermost frames are the same and no
 * such word has changed, the stack is the same.  To compare the words costs a tenth of a walk, since none waits for another.
 *
 * One thread's; zero is empty.
 */
#ifndef AGENT_STACKS_TRAILS_H
#define AGENT_STACKS_TRAILS_H

#include <stdbool.h>

#include "agent/stacks/cache.h"

#define SL_TRAIL_FRAMES 9u   /* innermost: six of ours, three of the program's */
#define SL_TRAIL_CHECKS 320u /* words outside of them; longer trails are not kept */

struct sl_trail_start {
	uint64_t pc[SL_TRAIL_FRAMES], sp; /* sp: of the frame outside */
	uint64_t bp;			  /* there; not part of the key */
	uint64_t hash;
};

struct sl_trail_check {
	uint64_t address, value;
};

/* Number of the stack that begins so and is still there; 0: none is known. */
uint32_t sl_trails_find(struct sl_cache *trails, const struct sl_trail_start *start);

/*
 * An entry with room for `most` checks, to be filled by the caller, who then gives it its number (sl_trails_close).  start->bp must
 * be the same only if bp_matters.  NULL: another stack with this start is kept.
 */
struct sl_cache_entry *sl_trails_open(struct sl_cache *trails, const struct sl_trail_start *start, bool bp_matters, uint32_t most);
struct sl_trail_check *sl_trails_checks(struct sl_cache *trails, const struct sl_cache_entry *entry);
void sl_trails_close(struct sl_cache_entry *entry, uint32_t count, uint32_t id);

#endif
