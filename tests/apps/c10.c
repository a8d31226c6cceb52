/* SPDX-License-Identifier: MIT */
/* What PyTorch's libc10 has for its profiler, under its mangled names: the allocator above it reports there. */
#include <stdint.h>

struct device {
	int8_t type, index;
};

void report(void *, int64_t, uint64_t, uint64_t, struct device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void out_of_memory(int64_t, uint64_t, uint64_t, struct device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");

void report(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
{
}

void out_of_memory(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
{
}
