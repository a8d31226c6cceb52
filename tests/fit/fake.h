/* SPDX-License-Identifier: MIT */
/* The state of the device, set by the oracle. */
#pragma once

#include <stdint.h>

struct fake {
	uint64_t capacity, total, used;
	unsigned long long calls;	  /* segments, and runs of pages */
	unsigned now, due;		  /* an event recorded now is over at op `due` */
	int capturing;			  /* the calling thread's stream */
	unsigned block_count, descending; /* addresses of cudaMalloc fall instead */
	struct {
		uint64_t address, bytes;
	} blocks[16384];
};

extern struct fake fake;
