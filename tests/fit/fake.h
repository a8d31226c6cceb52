/* SPDX-License-Identifier: MIT */
/* The state of the device, set by the oracle. */
#pragma once

#include <stdint.h>

struct fake {
	uint64_t capacity, total, used;
	unsigned long long calls;	  /* allocations of segments and of runs of pages */
	unsigned now, due;		  /* an event recorded now is complete at op `due` */
	int capturing;			  /* whether the calling thread's stream captures */
	unsigned block_count, descending; /* descending: cudaMalloc's addresses fall */
	struct {
		uint64_t address, bytes;
	} blocks[16384];
};

extern struct fake fake;
