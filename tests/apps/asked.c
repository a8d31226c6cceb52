/* SPDX-License-Identifier: MIT */
/*
 * Blocks as PyTorch's allocator makes them: stream, size, questions to the driver and to events, the report.
 * The calls go to stand-ins in c10.c, in PyTorch's order.
 */
#include "gpu.h"

struct device {
	int8_t type, index;
};
struct cuda_stream {
	void *handle;
};

void report(void *, int64_t, uint64_t, uint64_t, struct device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void *stream_of(const struct cuda_stream *) __asm__("_ZNK3c104cuda10CUDAStream6streamEv");
uint64_t roundup(uint64_t) __asm__("_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm");
uint64_t roundup_new(uint64_t) __asm__("_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm");
void settings(const char *const *) __asm__("_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERKSs");
void make_pool(void *, void *, uint8_t) __asm__("_ZN3c104cuda7MemPoolC1EPNS0_20CUDACachingAllocator13CUDAAllocatorEb");
extern unsigned pools;

int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);

static const struct device device = {1, 0};

int main(void)
{
	struct cuda_stream first = {(void *)0x5000}, none = {NULL};
	const char *text = "expandable_segments:True";
	char *base;
	void *event;

	OK(cudaMalloc((void **)&base, 20 * MB));
	CHECK(stream_of(&first) == first.handle && roundup(1000) == 7);
	report(base, 1024, 1024, 20 * MB, device);
	CHECK(stream_of(&none) == NULL && roundup_new(2048) == 9); /* asked as it is, on the default stream */
	report(base + 1024, 2048, 3072, 20 * MB, device);
	stream_of(&none);
	report(base + 3072, 512, 3584, 20 * MB, device);  /* less than 512 bytes: the size is not asked for */
	report(base + 4096, 4096, 7680, 20 * MB, device); /* nothing was seen */
	stream_of(&first);
	roundup(9999);
	report(base + 8192, 8192, 15872, 20 * MB, device); /* more than the block has: of another one */
	OK(cudaEventCreate(&event));
	OK(cudaEventRecord(event, NULL));
	report(base, -1024, 14848, 20 * MB, device);
	OK(cudaEventQuery(event));
	settings(&text);
	make_pool(NULL, NULL, 1);
	CHECK(pools == 1);
	return 0;
}
