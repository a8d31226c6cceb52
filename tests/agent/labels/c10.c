/* SPDX-License-Identifier: MIT */
#include "tests/agent/labels/c10.h"

uint64_t c10_seen[3];

void report(void *block, int64_t size, TOTALS struct device device)
{
	c10_seen[0]++;
	c10_seen[2] += (uintptr_t)block + (uint64_t)size + (uint64_t)device.type + (uint64_t)device.index;
#if FLAVOUR != 1
	c10_seen[2] += allocated + reserved;
#endif
}

#ifdef OOM_NAME
void out_of_memory(uint64_t size, uint64_t allocated, uint64_t reserved, struct device device)
{
	c10_seen[1]++;
	c10_seen[2] += size + allocated + reserved + (uint64_t)device.type + (uint64_t)device.index;
}
#endif

bool profiling(void)
{
	return false;
}
