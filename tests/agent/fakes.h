/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* Rows of the fake hook table. */
enum {
	FAKE_cudaMalloc = 1,
	FAKE_cudaFree,
	FAKE_cuMemAlloc_v2,
	FAKE_cuDevicePrimaryCtxRetain,
	FAKE_block,
	FAKE_push,
	FAKE_pop,
	FAKE_block_free,
	FAKE_block_oom,
};

extern uint64_t fake_claimed; /* bytes that calls under way claim of a limit */
