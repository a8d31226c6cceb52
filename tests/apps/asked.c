/* SPDX-License-Identifier: MIT */
/*
 * Makes the calls that PyTorch's allocator makes around a block, in its order: the stream, the rounded size, the driver and
 * events, and the report to the profiler.  They go to stand-ins in c10.c.
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
void make_shared_pool(void *, void *const *, uint8_t, uint8_t,
		      uint8_t) __asm__("_ZN2at4cuda7MemPoolC1ESt10shared_ptrIN3c104cuda20CUDACachingAllocator13CUDAAllocatorEEbbb");
extern unsigned pools, graphs;

struct pool_name {
	uint64_t first, second;
};
struct pool_name pool_id(void *) __asm__("_ZN2at4cuda7MemPool2idEv");
void pool_gone(void *) __asm__("_ZN2at4cuda7MemPoolD1Ev");
void capture_end_first(void *) __asm__("_ZN2at4cuda9CUDAGraph15capture_end_preEv");
void retain_pool(void *, struct pool_name) __asm__("_ZN2at4cuda9CUDAGraph11retain_poolESt4pairIyyE");
void capture_begin(void *, struct pool_name,
		   int) __asm__("_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode");
void capture_end(void *) __asm__("_ZN2at4cuda9CUDAGraph11capture_endEv");
struct pool_name pool_of(void *) __asm__("_ZN2at4cuda9CUDAGraph4poolEv");
void graph_gone(void *) __asm__("_ZN2at4cuda9CUDAGraphD1Ev");

int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);

static const struct device device = {1, 0};

/* Captures a graph with a pool of its own; blocks are made meanwhile on the captured stream and on another. */
static void capture(char *base)
{
	struct cuda_stream stream, none = {NULL};
	void *graph = base, *made;

	OK(cudaStreamCreate(&stream.handle));
	capture_begin(graph, (struct pool_name){0, 5}, 2);
	OK(cudaStreamBeginCapture(stream.handle, 0));
	stream_of(&stream);
	report(base + 16384, 512, 16384, 20 * MB, device);
	stream_of(&none);
	report(base + 20480, 512, 16896, 20 * MB, device);
	OK(cudaStreamEndCapture(stream.handle, &made));
	capture_end(graph);
	CHECK(pool_of(graph).first == 77 && pool_of(graph).second == 0);
	graph_gone(graph);
	CHECK(graphs == 9);
}

/* Captures two graphs at once.  The second shares a MemPool's pool; its capture ends by two calls. */
static void capture_two(char *base)
{
	struct cuda_stream streams[2];
	void *made;

	for (unsigned i = 0; i < 2; i++) {
		OK(cudaStreamCreate(&streams[i].handle));
		OK(cudaStreamBeginCapture(streams[i].handle, 0));
		stream_of(&streams[i]);
		capture_begin(base + 100 + i, (struct pool_name){0, i ? 9 : 0}, 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		stream_of(&streams[i / 2]);
		report(base + 24576 + 512 * i, 512, 16896 + 512 * i, 20 * MB, device);
	}
	for (unsigned i = 0; i < 2; i++)
		OK(cudaStreamEndCapture(streams[i].handle, &made));
	capture_end(base + 100);
	retain_pool(base + 101, (struct pool_name){0, 8});
	capture_end_first(base + 101);
}

static void use_pools(char *base)
{
	void *none[2] = {NULL, NULL}, *own[2] = {base, NULL};

	make_pool(base + 1, NULL, 1);
	make_pool(base + 2, base, 1);
	make_shared_pool(base + 3, none, 1, 0, 0);
	make_shared_pool(base + 4, own, 1, 0, 0);
	make_shared_pool(base + 5, none, 1, 1, 0);
	make_shared_pool(base + 6, none, 1, 0, 1);
	CHECK(pools == 6 + 1000 + 10 + 100);
	CHECK(pool_id(base + 1).second == 9);
	capture_two(base);
	pool_gone(base + 1);
	CHECK(!pools);
}

int main(void)
{
	struct cuda_stream first = {(void *)0x5000}, none = {NULL};
	const char *text = "expandable_segments:True,max_split_size_mb:64";
	char *base;
	void *event;

	OK(cudaMalloc((void **)&base, 20 * MB));
	CHECK(stream_of(&first) == first.handle && roundup(1000) == 7);
	report(base, 1024, 1024, 20 * MB, device);
	CHECK(stream_of(&none) == NULL && roundup_new(2048) == 9); /* the size needs no rounding; the default stream */
	report(base + 1024, 2048, 3072, 20 * MB, device);
	stream_of(&none);
	report(base + 3072, 512, 3584, 20 * MB, device);  /* less than 512 bytes: PyTorch asks for no rounding */
	report(base + 4096, 4096, 7680, 20 * MB, device); /* neither stream nor size was asked for before */
	stream_of(&first);
	roundup(9999);
	report(base + 8192, 8192, 15872, 20 * MB, device); /* 9999 is more than the block has: it was another's size */
	OK(cudaEventCreate(&event));
	OK(cudaEventRecord(event, NULL));
	report(base, -1024, 14848, 20 * MB, device);
	OK(cudaEventQuery(event));
	settings(&text);
	capture(base);
	use_pools(base);
	return 0;
}
