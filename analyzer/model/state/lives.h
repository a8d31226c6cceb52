/* SPDX-License-Identifier: MIT */
/* A site's blocks: their sizes, how long the freed ones lived, how many were freed before the same stack asked again. */
#pragma once

#include <stdint.h>

/* size classes: up to 512 B, then each four times the one before; the last has no upper bound */
#define SL_LIVES_CLASSES 12

struct sl_lives {
	uint64_t ended_ns; /* sum of the lifetimes of blocks that ended */
	/* blocks that were freed before the same stack asked for the next one; the last block is not counted */
	uint64_t temporary;
	uint32_t sizes[SL_LIVES_CLASSES];
};

static inline unsigned sl_lives_class(uint64_t bytes)
{
	unsigned power = bytes > 512 ? 64 - (unsigned)__builtin_clzll((bytes - 1) >> 9) : 0;

	return (power + 1) / 2 < SL_LIVES_CLASSES ? (power + 1) / 2 : SL_LIVES_CLASSES - 1;
}

static inline uint64_t sl_lives_most(unsigned class)
{
	return class + 1 < SL_LIVES_CLASSES ? 512ull << 2 * class : UINT64_MAX;
}
