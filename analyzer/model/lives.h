/* SPDX-License-Identifier: MIT */
/* What became of a place's blocks: how large they were, how long those lived that ended, how many were freed at once. */
#ifndef ANALYZER_MODEL_LIVES_H
#define ANALYZER_MODEL_LIVES_H

#include <stdint.h>

#define SL_LIVES_CLASSES 12 /* of sizes: up to 512 B, then each four times the one before; the last has no end */

struct sl_lives {
	uint64_t ended_ns;  /* lifetimes of those that ended, in sum */
	uint64_t temporary; /* that were freed before the next was asked for by the same stack; not the last one */
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

#endif
