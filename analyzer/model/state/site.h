/* SPDX-License-Identifier: MIT */
/* A place that asks for memory, and what its blocks hold.  A report keeps these for each rank, so their size matters. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/trace/stack.h"

/* A site: the call, stack, label, device and kind of its blocks.  Blocks name their site by its index. */
struct sl_site {
	struct sl_stack stack;
	uint32_t label, thread;
	uint16_t api;
	int16_t device; /* -1: none or unknown */
	uint8_t kind;
	/* a segment of a framework other than PyTorch; other blocks of the same stack have a site with pooled false */
	bool pooled;
	uint32_t holder; /* index for library and device */
	uint32_t track;	 /* index into the model's tracks */
	uint32_t live_blocks, at_peak_blocks;
	uint64_t live_bytes, total_bytes, total_blocks;
	uint64_t at_peak_bytes; /* read these two by sl_model_site_at_peak and sl_model_blocks_at_peak */
};
_Static_assert(sizeof(struct sl_site) == 80, "the cost of each place of each rank");

/* What only the replay needs to know of a site. */
struct sl_site_course {
	uint32_t epoch;	   /* epoch that at_peak_* belong to */
	uint32_t labelled; /* index for label and device; SL_NO_SITE: none, or too many labels */
};
