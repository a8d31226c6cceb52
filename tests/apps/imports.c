/* SPDX-License-Identifier: MIT */
/* imports: external memory, a pool's pointer that is imported, and a multicast object, which keeps the memory bound to it. */
#include "gpu.h"

#include <unistd.h>

int cuImportExternalMemory(void **, const void *);
int cuExternalMemoryGetMappedBuffer(address *, void *, const void *);
int cuDestroyExternalMemory(void *);
int cuMemPoolCreate(void **, const struct pool_props *);
int cuMemAllocFromPoolAsync(address *, size_t, void *, void *);
int cuMemPoolExportToShareableHandle(void *, void *, int, unsigned long long);
int cuMemPoolImportFromShareableHandle(void **, void *, int, unsigned long long);
int cuMemPoolExportPointer(struct handle64 *, address);
int cuMemPoolImportPointer(address *, void *, struct handle64 *);
int cuMulticastCreate(address *, const void *);
int cuMulticastAddDevice(address, int);
int cuMulticastBindMem(address, size_t, address, size_t, size_t, unsigned long long);
int cuMulticastUnbind(address, int, size_t, size_t);

static size_t free_now(void)
{
	size_t f, total;
	OK(cuMemGetInfo_v2(&f, &total));
	return f;
}

static void external(void)
{
	struct {
		int type;
		void *handle[2];
		unsigned long long size;
		unsigned flags, reserved[16];
	} memory = {.type = 1, .size = 8 * MB};
	struct {
		unsigned long long offset, size;
		unsigned flags, reserved[16];
	} buffer = {.offset = MB, .size = 4 * MB};
	void *handle;
	address p;
	OK(cuImportExternalMemory(&handle, &memory));
	OK(cuExternalMemoryGetMappedBuffer(&p, handle, &buffer));
	OK(cuMemFree_v2(p)); /* the driver's documentation says: by cuMemFree */
	OK(cuDestroyExternalMemory(handle));
}

static void pool(void)
{
	struct pool_props props = {.alloc_type = 1, .handle_types = 1, .location = {1, 0}};
	struct handle64 data;
	void *mine, *theirs;
	address p, q;
	int fd;
	OK(cuMemPoolCreate(&mine, &props));
	OK(cuMemAllocFromPoolAsync(&p, 2 * MB, mine, NULL));
	OK(cuMemPoolExportToShareableHandle(&fd, mine, 1, 0));
	OK(cuMemPoolImportFromShareableHandle(&theirs, (void *)(intptr_t)fd, 1, 0));
	OK(cuMemPoolExportPointer(&data, p));
	OK(cuMemPoolImportPointer(&q, theirs, &data));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	close(fd);
}

static void multicast(void)
{
	struct {
		unsigned devices;
		size_t size;
		unsigned long long types, flags;
	} object = {1, 32 * MB, 1, 0};
	struct memory_prop prop = {.type = 1, .location = {1, 0}};
	address mc, memory;
	size_t start = free_now();
	OK(cuMulticastCreate(&mc, &object));
	OK(cuMulticastAddDevice(mc, 0));
	CHECK(free_now() == start); /* the object takes no physical memory */
	OK(cuMemCreate(&memory, 16 * MB, &prop, 0));
	OK(cuMulticastBindMem(mc, 0, memory, 0, 16 * MB, 0));
	OK(cuMemRelease(memory));
	CHECK(free_now() == start - 16 * MB);
	OK(cuMulticastUnbind(mc, 0, 0, 16 * MB));
	CHECK(free_now() == start);
	OK(cuMemCreate(&memory, 16 * MB, &prop, 0));
	OK(cuMulticastBindMem(mc, 0, memory, 0, 16 * MB, 0));
	OK(cuMemRelease(memory));
	OK(cuMemRelease(mc));
	CHECK(free_now() == start);
}

int main(void)
{
	void *ctx;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	size_t start = free_now();
	external();
	pool();
	multicast();
	CHECK(free_now() == start);
	return 0;
}
