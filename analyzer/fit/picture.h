/* SPDX-License-Identifier: MIT */
/* The content of the allocator's segments when a run failed: who held what, and the gaps. */
#pragma once

#include "analyzer/fit/engine.h"
#include "analyzer/fit/recording.h"

struct sl_fit_piece {
	uint64_t segment; /* address of the segment's first piece */
	uint64_t address, bytes;
	size_t at; /* op that made the block; SL_FIT_GAP: a gap */
	uint16_t stream;
	bool small, expandable;
};
#define SL_FIT_GAP SIZE_MAX

struct sl_fit_picture {
	SL_VECTOR(struct sl_fit_piece) pieces; /* by segment, then by address */
};

/* live, made: for each id the block, and the op that made it or SL_FIT_GAP if it is not live. */
void sl_fit_picture_take(struct sl_fit_picture *picture, const struct sl_fit_engine *engine, struct sl_fit_block *const *live,
			 const size_t *made, uint32_t ids);
void sl_fit_picture_free(struct sl_fit_picture *picture);
