/* SPDX-License-Identifier: MIT */
/*
 * Blocks that were still there when the recording ended, by an error or a kill, and would have been freed soon, at a place that
 * keeps some blocks and frees others.  They are told by their order: where what became of the births before the last ones repeats
 * itself, as in a loop that keeps each sixth, these are taken to go on so.  Else by their size: a young block is passing where no
 * older one that is left is half or twice as large, and those that were freed are.  Where neither tells, as where it is chance what
 * is kept, young ones are unsure.
 */
#pragma once

#include "analyzer/model/model.h"

struct sl_passing {
	uint64_t young_ns;     /* born since then; UINT64_MAX: none is passing */
	uint64_t above, below; /* bytes: a passing block has more than the one or less than the other */
	uint64_t least, most;  /* bytes: it has no fewer and no more */
	uint64_t blocks, bytes;
	uint64_t unsure; /* blocks that may be passing, and are not among these */
	unsigned count;	 /* of those told by order: their births */
	uint64_t time_ns[SL_TRACK_RECENT];
};

/* While the model has its tables and its courses.  lives: of what lives now; else when the final run of deaths began. */
struct sl_passing sl_passing_at(const struct sl_model *model, const struct sl_track *track, bool lives);

static inline bool sl_passing_is(const struct sl_passing *passing, uint64_t time_ns, uint64_t bytes)
{
	for (unsigned i = 0; i < passing->count; i++)
		if (passing->time_ns[i] == time_ns)
			return true;
	return time_ns >= passing->young_ns && (bytes > passing->above || bytes < passing->below) && bytes >= passing->least &&
	       bytes <= passing->most;
}
