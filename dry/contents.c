/* SPDX-License-Identifier: MIT */
/*
 * The contents of device memory. Small copies move, because their bytes decide things: indices, counts, flags. Kernels do no work;
 * their results read as 0. A large copy leaves zeros, so that a model of many gigabytes takes no room on the host.
 */
#include "tests/sim/sim.h"

#include <string.h>
#include <sys/mman.h>

static const uint64_t limit = 1 << 20; /* bytes; python/ copies more of integers */

/* Whole pages are given back instead of being written. */
static void clear(uint64_t at, uint64_t bytes)
{
	uint64_t first = sim_round_up(at, 4096), last = (at + bytes) & ~4095ull;

	if (bytes <= 1 << 16 || first >= last) {
		memset((void *)at, 0, bytes);
		return;
	}
	memset((void *)at, 0, first - at);
	memset((void *)last, 0, at + bytes - last);
	madvise((void *)first, last - first, MADV_DONTNEED);
}

/* The count that the next small copy to the host brings: an operator without a kernel has none. -1: its own. */
static __thread struct {
	int64_t value;
	bool is_set;
} next;

void cuDryNextValue(int64_t value)
{
	next.value = value;
	next.is_set = value >= 0;
}

void sim_contents_copy(uint64_t to, bool to_host, uint64_t from, bool from_host, uint64_t bytes)
{
	if (next.is_set && to_host && !from_host && (bytes == 4 || bytes == 8)) {
		next.is_set = false;
		memcpy((void *)to, &next.value, bytes);
	} else if ((to_host && from_host) || bytes <= limit)
		memmove((void *)to, (void *)from, bytes);
	else if (to_host)
		memset((void *)to, 0, bytes);
	else
		clear(to, bytes);
}

void sim_contents_fill(uint64_t to, bool host, uint64_t value, size_t width, uint64_t count)
{
	if (!host && (!value || count * width > limit)) {
		clear(to, count * width);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		memcpy((char *)to + i * width, &value, width);
}
