/* SPDX-License-Identifier: MIT */
/*
 * Blocks that were live when an error or a kill ended the recording, and would have been freed soon, at a place that keeps some
 * blocks and frees others.  Their order tells them: where it repeats which births are kept, as in a loop that keeps every
 * sixth, the last births are taken to follow.  Else their size: a young block is passing if it is more than twice, or less than
 * half, as large as every older block that is left, and about as large as those that were freed.  Where neither tells, as where
 * chance decides what is kept, young ones are unsure.
 */
#pragma once

#include "analyzer/model/state/model.h"

struct sl_freed_soon {
	uint64_t young_ns;     /* a passing block was born since then; UINT64_MAX: size tells of none */
	uint64_t above, below; /* bytes: a passing block has more than `above` or less than `below` */
	uint64_t least, most;  /* bytes: and from `least` to `most` */
	uint64_t blocks, bytes;
	uint64_t unsure; /* blocks that may be passing, and are not in `blocks` */
	unsigned count;	 /* of time_ns: births of passing blocks that their order tells */
	uint64_t time_ns[SL_TRACK_RECENT];
};

/*
 * To be called while the model has its tables and courses.  lives: judges the blocks that live now; false: those that lived
 * when the final run of deaths began.
 */
struct sl_freed_soon sl_freed_soon_at(const struct sl_model *model, const struct sl_track *track, bool lives);

static inline bool sl_freed_soon_is(const struct sl_freed_soon *passing, uint64_t time_ns, uint64_t bytes)
{
	for (unsigned i = 0; i < passing->count; i++)
		if (passing->time_ns[i] == time_ns)
			return true;
	return time_ns >= passing->young_ns && (bytes > passing->above || bytes < passing->below) && bytes >= passing->least &&
	       bytes <= passing->most;
}
