/* SPDX-License-Identifier: MIT */
/*
 * A fake device for libc10_cuda.so alone: it has so many bytes, its addresses only rise and are never handed out twice, and
 * its events complete when the oracle says so.  Other functions return 0.  The simulator of tests/sim is no use here: it
 * reuses addresses, and PyTorch chooses between equal blocks by address.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

struct event {
	unsigned due;
};

static int take(uint64_t bytes)
{
	if (fake.used + bytes > fake.capacity)
		return 2;
	fake.used += bytes;
	return 0;
}

int cudaMalloc(void **ptr, size_t bytes)
{
	static uint64_t up = 1ull << 40, down = 1ull << 46;
	uint64_t at;

	if (take(bytes))
		return 2;
	fake.calls++;
	at = fake.descending ? (down -= bytes) : up;
	up += bytes;
	*ptr = (void *)at;
	fake.blocks[fake.block_count].address = at;
	fake.blocks[fake.block_count++].bytes = bytes;
	if (fake.block_count == sizeof(fake.blocks) / sizeof(*fake.blocks))
		abort();
	return 0;
}

int cudaFree(void *ptr)
{
	for (unsigned i = 0; i < fake.block_count; i++)
		if (fake.blocks[i].address == (uint64_t)ptr) {
			fake.used -= fake.blocks[i].bytes;
			fake.blocks[i] = fake.blocks[--fake.block_count];
			return 0;
		}
	abort();
}

int cuMemCreate(uint64_t *handle, size_t bytes, const void *properties, uint64_t flags)
{
	if (take(bytes))
		return 2;
	*handle = bytes;
	return 0;
}

int cuMemRelease(uint64_t handle)
{
	fake.used -= handle;
	return 0;
}

int cuMemAddressReserve(uint64_t *ptr, size_t bytes, size_t alignment, uint64_t at, uint64_t flags)
{
	static uint64_t next = 1ull << 44;

	*ptr = next;
	next += bytes;
	return 0;
}

int cuMemSetAccess(uint64_t ptr, size_t bytes, const void *access, size_t count)
{
	fake.calls++; /* once for each run of pages */
	return 0;
}

int cudaMemGetInfo(size_t *available, size_t *total)
{
	*available = fake.capacity - fake.used;
	*total = fake.total;
	return 0;
}

int cudaGetDeviceProperties_v2(void *properties, int device)
{
	memcpy((char *)properties + 288, &fake.total, sizeof(fake.total)); /* totalGlobalMem */
	return 0;
}

int cudaGetDeviceProperties(void *properties, int device)
{
	return cudaGetDeviceProperties_v2(properties, device);
}

int cudaEventCreateWithFlags(struct event **event, unsigned flags)
{
	*event = calloc(1, sizeof(**event));
	return 0;
}

int cudaEventRecord(struct event *event, void *stream)
{
	event->due = fake.due;
	return 0;
}

int cudaEventQuery(struct event *event)
{
	return event->due <= fake.now ? 0 : 600;
}

#define GIVES(name, type, value, ...)                                                                                              \
	int name(__VA_ARGS__)                                                                                                      \
	{                                                                                                                          \
		*out = (type)(value);                                                                                              \
		return 0;                                                                                                          \
	}

GIVES(cudaGetDevice, int, 0, int *out)
GIVES(cudaGetDeviceCount, int, 1, int *out)
GIVES(cudaDriverGetVersion, int, 13000, int *out)
GIVES(cudaStreamIsCapturing, int, 0, void *stream, int *out)
GIVES(cudaStreamGetCaptureInfo, int, fake.capturing, void *stream, int *out)
GIVES(cudaStreamGetCaptureInfo_v2, int, 0, void *stream, int *out)
GIVES(cudaDeviceCanAccessPeer, int, 0, int *out, int a, int b)
GIVES(cuDeviceGetAttribute, int, 0, int *out, int attribute, int device)
GIVES(cuMemGetAllocationGranularity, size_t, 2 << 20, size_t *out, const void *properties, int option)
GIVES(cuGetErrorString, const char *, "error", int code, const char **out)
GIVES(nvmlDeviceGetComputeRunningProcesses, unsigned, 0, void *device, unsigned *out, void *processes)

const char *cudaGetErrorString(int code)
{
	return "error";
}

const char *cudaGetErrorName(int code)
{
	return "error";
}

static int nothing(void)
{
	return 0;
}

int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, uint64_t flags, int *result)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	*function = found ? found : (void *)nothing;
	if (result)
		*result = 0;
	return 0;
}

int cudaGetDriverEntryPoint(const char *name, void **function, uint64_t flags, int *result)
{
	return cudaGetDriverEntryPointByVersion(name, function, 0, flags, result);
}

#define ZERO(name)                                                                                                                 \
	int name(void)                                                                                                             \
	{                                                                                                                          \
		return 0;                                                                                                          \
	}
#include "fake_names.h"
