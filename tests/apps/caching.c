/* SPDX-License-Identifier: MIT */
/*
 * A caching allocator like PyTorch's: segments from the driver, blocks inside them, each reported to libc10
 * with the totals. What does not fit makes it give free segments back and ask again, and then report out of memory.
 * What is asked for while a graph is captured comes from a pool of that graph's own.
 * One device, one thread.  SEGMENT_US: microseconds between getting a segment and reporting it, as when the program lost its processor.
 */
#include <stdbool.h>
#include <unistd.h>

#include "gpu.h"

#define SEGMENT (256 * MB) /* at least */
#define PIECES	4096
#define RELAXED 2 /* a capture in this mode does not forbid cudaMalloc */

struct device {
	int8_t type, index;
};

void report(void *, int64_t, uint64_t, uint64_t, struct device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void out_of_memory(int64_t, uint64_t, uint64_t, struct device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
void *stream_of(void *const *) __asm__("_ZNK3c104cuda10CUDAStream6streamEv");
uint64_t roundup(uint64_t) __asm__("_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm");
struct pool_name {
	uint64_t first, second;
};
void capture_begin(void *, struct pool_name,
		   int) __asm__("_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode");
void capture_end(void *) __asm__("_ZN2at4cuda9CUDAGraph11capture_endEv");
int cudaGraphDestroy(void *graph);
int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags);
void *caching_new(size_t bytes);
void caching_delete(void *block);
void caching_capture(void);
void *caching_captured(void);
int set_fraction(void);
void *set_fraction_method(void *module, void *arguments) __asm__("_Z28THCPModule_setMemoryFractionP7_objectS0_");
void *call_method(void *arguments);
void *blas_handle(size_t workspace) __asm__("_ZN2at4cuda24getCurrentCUDABlasHandleEv");

/* Sorted by segment and address; the pieces of a segment add up to the segment. */
static struct piece {
	char *segment, *at;
	size_t bytes;
	bool used;
	unsigned pool; /* the graph in whose private pool it is; 0: none */
} pieces[PIECES];
static unsigned count, graphs, pool;
static void *stream;
static uint64_t allocated, reserved, limit = UINT64_MAX;
static const struct device device = {1, 0};

void caching_limit(uint64_t bytes);

/* What set_per_process_memory_fraction allows: beyond it the allocator refuses without asking the driver. */
void caching_limit(uint64_t bytes)
{
	limit = bytes;
}

static void insert(unsigned at, struct piece piece)
{
	CHECK(count < PIECES);
	memmove(&pieces[at + 1], &pieces[at], (count++ - at) * sizeof(piece));
	pieces[at] = piece;
}

static void erase(unsigned at)
{
	memmove(&pieces[at], &pieces[at + 1], (--count - at) * sizeof(*pieces));
}

static bool is_whole(unsigned i)
{
	return !pieces[i].used && pieces[i].at == pieces[i].segment &&
	       (i + 1 == count || pieces[i + 1].segment != pieces[i].segment);
}

static void empty_cache(void)
{
	for (unsigned i = count; i--;)
		if (is_whole(i) && !pieces[i].pool) {
			OK(cudaFree(pieces[i].segment));
			reserved -= pieces[i].bytes;
			erase(i);
		}
}

static bool new_segment(size_t bytes)
{
	void *segment;

	bytes = bytes < SEGMENT ? SEGMENT : bytes;
	if (reserved + bytes > limit)
		empty_cache();
	if (reserved + bytes > limit)
		return false;
	if (cudaMalloc(&segment, bytes)) {
		empty_cache();
		if (cudaMalloc(&segment, bytes))
			return false;
	}
	if (getenv("SEGMENT_US"))
		usleep((useconds_t)atoi(getenv("SEGMENT_US")));
	reserved += bytes;
	insert(count, (struct piece){segment, segment, bytes, false, pool});
	return true;
}

static unsigned find(size_t bytes)
{
	for (unsigned i = 0; i < count; i++)
		if (!pieces[i].used && pieces[i].bytes >= bytes && pieces[i].pool == pool)
			return i;
	return count;
}

void *caching_new(size_t bytes)
{
	unsigned i = find(bytes);

	if (i == count && !new_segment(bytes)) {
		out_of_memory((int64_t)bytes, allocated, reserved, device);
		return NULL;
	}
	i = find(bytes);
	if (pieces[i].bytes > bytes) {
		insert(i + 1, (struct piece){pieces[i].segment, pieces[i].at + bytes, pieces[i].bytes - bytes, false, pool});
		pieces[i].bytes = bytes;
	}
	pieces[i].used = true;
	allocated += bytes;
	if (pool) {
		stream_of(&stream);
		roundup(bytes);
	}
	report(pieces[i].at, (int64_t)bytes, allocated, reserved, device);
	return pieces[i].at;
}

void caching_delete(void *block)
{
	unsigned i = 0;

	while (i < count && pieces[i].at != block)
		i++;
	CHECK(i < count && pieces[i].used);
	pieces[i].used = false;
	allocated -= pieces[i].bytes;
	report(block, -(int64_t)pieces[i].bytes, allocated, reserved, device);
	if (i + 1 < count && !pieces[i + 1].used && pieces[i + 1].segment == pieces[i].segment) {
		pieces[i].bytes += pieces[i + 1].bytes;
		erase(i + 1);
	}
	if (i && !pieces[i - 1].used && pieces[i - 1].segment == pieces[i].segment) {
		pieces[i - 1].bytes += pieces[i].bytes;
		erase(i);
	}
}

void caching_capture(void)
{
	OK(cudaStreamCreate(&stream));
	pool = ++graphs;
	capture_begin(&pieces[PIECES - pool], (struct pool_name){0, 0}, RELAXED);
	OK(cudaStreamBeginCapture(stream, RELAXED));
}

/* The graph's executable. */
void *caching_captured(void)
{
	void *graph, *executable;

	OK(cudaStreamEndCapture(stream, &graph));
	capture_end(&pieces[PIECES - pool]);
	OK(cudaGraphInstantiate(&executable, graph, 0));
	OK(cudaGraphDestroy(graph));
	pool = 0;
	return executable;
}

/* The driver's part of setMemoryFraction up to PyTorch 2.9. */
int set_fraction(void)
{
	size_t free_bytes, total_bytes;

	return cudaMemGetInfo(&free_bytes, &total_bytes);
}

/* What Python calls in PyTorch: found in a table by its exported name.  Newer releases ask nothing of the driver here. */
void *set_fraction_method(void *module, void *arguments)
{
	return arguments;
}

void *call_method(void *arguments)
{
	static void *(*const volatile methods[])(void *, void *) = {set_fraction_method};

	return methods[0](NULL, arguments);
}

/* at::cuda::getCurrentCUDABlasHandle, of a new stream: PyTorch gives the handle a workspace of its allocator's. */
void *blas_handle(size_t workspace)
{
	void *block = caching_new(workspace);
	CHECK(block);
	return block;
}
