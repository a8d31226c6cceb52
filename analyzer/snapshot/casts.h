/* SPDX-License-Identifier: MIT */
/*
 * Autocast keeps a copy of each weight in a type of half the size.  The stack of a copy is that of a cast activation, so the size
 * tells: half of a block's that was there before autocast's first cast.  Of one size there are no more copies than such blocks.
 */
#pragma once

#include "analyzer/snapshot/rebuild.h"

struct sl_casts_size {
	uint64_t bytes, left; /* left: blocks without a copy */
};

struct sl_casts {
	const struct sl_snapshot *snapshot;
	SL_VECTOR(uint8_t) stacks; /* of each stack: 0 unknown, 1 none of autocast's, 2 of a cast */
	SL_VECTOR(struct sl_casts_size) sizes;
	struct sl_pieces copies;
};

void sl_casts_begin(struct sl_casts *casts, const struct sl_rebuilt *rebuilt);
/* True: the block that this event makes is the copy of a weight.  To be asked in the order of the events. */
bool sl_casts_take(struct sl_casts *casts, const struct sl_snapshot_event *event);
void sl_casts_give(struct sl_casts *casts, uint64_t addr); /* the block is freed */
void sl_casts_end(struct sl_casts *casts);
