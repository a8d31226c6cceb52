/* SPDX-License-Identifier: MIT */
/*
 * Blocks that were still there when the recording ended, by an error or a kill, and would have been freed soon.  At a place that
 * keeps some blocks and frees others they are told by their size: a young block is passing where no older one that is left is
 * half or twice as large, and those that were freed are.  Where both are of one size nothing tells them apart.
 */
#ifndef ANALYZER_ANALYSES_PASSING_H
#define ANALYZER_ANALYSES_PASSING_H

#include "analyzer/model/model.h"

struct sl_passing {
	uint64_t young_ns; /* born since then; UINT64_MAX: none is passing */
	uint64_t above, below, least,
		most; /* bytes: a passing block has more or less than the first two, and is within the others */
	uint64_t blocks, bytes;
};

/* While the model has its tables and its courses. */
struct sl_passing sl_passing_at(const struct sl_model *model, const struct sl_track *track);

static inline bool sl_passing_is(const struct sl_passing *passing, uint64_t time_ns, uint64_t bytes)
{
	return time_ns >= passing->young_ns && (bytes > passing->above || bytes < passing->below) && bytes >= passing->least &&
	       bytes <= passing->most;
}

#endif
