/* SPDX-License-Identifier: MIT */
/*
 * Like torch_memory_saver's preloaded hook: cudaMalloc maps physical memory at a reserved address, so that the memory can be
 * given back and the address kept; other calls go to the next function, by RTLD_NEXT.
 */
#include "beside.h"

#define UNIT (2ull << 20)

struct prop { /* CUmemAllocationProp */
	int type, handle_types, location_type, location_id;
	void *win32;
	unsigned char flags[8];
};
struct access { /* CUmemAccessDesc */
	int location_type, location_id, flags;
};

int cuCtxGetDevice(int *device);
int cuMemAddressReserve(address *p, size_t size, size_t alignment, address hint, uint64_t flags);
int cuMemCreate(uint64_t *handle, size_t size, const struct prop *prop, uint64_t flags);
int cuMemMap(address p, size_t size, size_t offset, uint64_t handle, uint64_t flags);
int cuMemSetAccess(address p, size_t size, const struct access *access, size_t count);
int cuMemUnmap(address p, size_t size);
int cuMemRelease(uint64_t handle);
int cuMemAddressFree(address p, size_t size);

static struct block {
	address p;
	uint64_t handle;
	size_t size;
} blocks[1024];
static unsigned count;
static int allocations;

static void *next(const char *name, void **kept)
{
	if (!*kept)
		*kept = need(dlsym(RTLD_NEXT, name), name);
	return *kept;
}

static int map(struct block *block, int device)
{
	struct prop prop = {.type = 1, .location_type = 1, .location_id = device};
	struct access access = {1, device, 3};
	int result = cuMemCreate(&block->handle, block->size, &prop, 0);

	if (!result)
		result = cuMemAddressReserve(&block->p, block->size, 0, 0, 0);
	if (!result)
		result = cuMemMap(block->p, block->size, 0, block->handle, 0);
	return result ? result : cuMemSetAccess(block->p, block->size, &access, 1);
}

/* The region: whole units. */
int cudaMalloc(void **p, size_t size)
{
	static void *real;
	int device = 0, result;

	if (size % UNIT || cuCtxGetDevice(&device))
		return CALL(next("cudaMalloc", &real), p, size);
	blocks[count].size = size;
	result = map(&blocks[count], device);
	if (!result) {
		*p = (void *)blocks[count++].p;
		allocations++;
	}
	return result;
}

int cudaFree(void *p)
{
	static void *real;
	struct block block;

	for (unsigned i = 0; i < count; i++)
		if (blocks[i].p == (address)p) {
			block = blocks[i];
			blocks[i] = blocks[--count];
			return cuMemUnmap(block.p, block.size) || cuMemRelease(block.handle) ||
			       cuMemAddressFree(block.p, block.size);
		}
	return CALL(next("cudaFree", &real), p);
}

__attribute__((destructor)) static void say(void)
{
	printf("like_memory_saver: %d\n", allocations);
}
