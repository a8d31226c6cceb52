/* SPDX-License-Identifier: MIT */
/* Stand-ins for functions of PyTorch's libc10, under their mangled names: an allocator reports its blocks to them. */
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

/* What the allocator calls before it reports a block. */
void *stream_of(void *const *self) __asm__("_ZNK3c104cuda10CUDAStream6streamEv");
uint64_t roundup(uint64_t) __asm__("_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm");
uint64_t roundup_new(uint64_t) __asm__("_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm");
void settings(const char *const *) __asm__("_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERKSs");

void *stream_of(void *const *self)
{
	return *self;
}

uint64_t roundup(uint64_t size)
{
	return 7;
}

uint64_t roundup_new(uint64_t size)
{
	return 9;
}

void settings(const char *const *text)
{
}

/* Methods of at::cuda::CUDAGraph; std::pair is returned as this struct is. */
struct pool_name {
	uint64_t first, second;
};
unsigned graphs;
void capture_begin(void *, struct pool_name,
		   int) __asm__("_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode");
void capture_end(void *) __asm__("_ZN2at4cuda9CUDAGraph11capture_endEv");
struct pool_name pool_of(void *) __asm__("_ZN2at4cuda9CUDAGraph4poolEv");
void graph_gone(void *) __asm__("_ZN2at4cuda9CUDAGraphD1Ev");

void capture_begin(void *self, struct pool_name pool, int mode)
{
	graphs += (unsigned)(pool.first + pool.second) + (unsigned)mode;
}

void capture_end(void *self)
{
	graphs++;
}

struct pool_name pool_of(void *self)
{
	return (struct pool_name){77, 0};
}

void graph_gone(void *self)
{
	graphs++;
}

void capture_end_first(void *) __asm__("_ZN2at4cuda9CUDAGraph15capture_end_preEv");
void retain_pool(void *, struct pool_name) __asm__("_ZN2at4cuda9CUDAGraph11retain_poolESt4pairIyyE");

void capture_end_first(void *self)
{
	graphs += 10;
}

void retain_pool(void *self, struct pool_name pool)
{
	graphs += 100 * (unsigned)pool.second;
}

/* torch.cuda.MemPool: its constructor in 2.6 and in 2.14, where the allocator is a shared_ptr. */
unsigned pools;
void make_pool(void *, void *, uint8_t) __asm__("_ZN3c104cuda7MemPoolC1EPNS0_20CUDACachingAllocator13CUDAAllocatorEb");
void make_shared_pool(void *, void *const *, uint8_t, uint8_t,
		      uint8_t) __asm__("_ZN2at4cuda7MemPoolC1ESt10shared_ptrIN3c104cuda20CUDACachingAllocator13CUDAAllocatorEEbbb");
struct pool_name pool_id(void *) __asm__("_ZN2at4cuda7MemPool2idEv");
void pool_gone(void *) __asm__("_ZN2at4cuda7MemPoolD1Ev");

void make_pool(void *self, void *allocator, uint8_t created)
{
	pools += created;
}

void make_shared_pool(void *self, void *const *allocator, uint8_t created, uint8_t on_oom, uint8_t no_split)
{
	pools += created + 10 * on_oom + 100 * no_split + (*allocator ? 1000 : 0);
}

struct pool_name pool_id(void *self)
{
	return (struct pool_name){0, 9};
}

void pool_gone(void *self)
{
	pools = 0;
}
