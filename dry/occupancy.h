/* SPDX-License-Identifier: MIT */
/* What a kernel of unknown code would get on a card; both of CUDA's interfaces ask. */
#pragma once

#include <stddef.h>

/* The architecture of the code that the driver would take: the largest with this major version that PyTorch's wheels carry. */
static inline int sl_dry_binary(long major, long minor)
{
	return major == 8 && minor > 6 ? 86 : (int)(major * 10 + minor);
}

/* Blocks of a multiprocessor, by its threads and shared bytes; 1024 bytes of a block's shared memory are the system's. */
static inline int sl_dry_occupancy(int block, size_t shared, int threads, int shared_bytes, int max_blocks)
{
	int count = block > 0 ? threads / ((block + 31) / 32 * 32) : 1;

	if (shared && (size_t)count > (size_t)shared_bytes / (shared + 1024))
		count = (int)((size_t)shared_bytes / (shared + 1024));
	return count > max_blocks ? max_blocks : count < 1 ? 1 : count;
}
