/* SPDX-License-Identifier: MIT */
/* vmm: physical memory lives until its last reference and its last mapping are gone, in every order. */
#include "gpu.h"

static struct memory_prop prop = {.type = 1, .handle_types = 1, .location = {1, 0}};

static size_t free_now(void)
{
	size_t f, total;
	OK(cuMemGetInfo_v2(&f, &total));
	return f;
}

int main(void)
{
	void *ctx;
	address va, handle, again;
	struct access rw = {{1, 0}, 3};
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	size_t start = free_now(), n = 16 * MB;
	OK(cuMemAddressReserve(&va, 4 * n, 0, 0, 0));
	CHECK(free_now() == start);

	OK(cuMemCreate(&handle, n, &prop, 0)); /* release, then unmap */
	OK(cuMemMap(va, n, 0, handle, 0));
	OK(cuMemSetAccess(va, n, &rw, 1));
	OK(cuMemRelease(handle));
	CHECK(free_now() == start - n);
	OK(cuMemUnmap(va, n));
	CHECK(free_now() == start);

	OK(cuMemCreate(&handle, n, &prop, 0)); /* mapped twice, retained, unmapped, released twice */
	OK(cuMemMap(va, n, 0, handle, 0));
	OK(cuMemMap(va + n, n, 0, handle, 0));
	OK(cuMemRetainAllocationHandle(&again, (void *)(va + n + 5)));
	CHECK(again == handle);
	OK(cuMemUnmap(va, 2 * n));
	OK(cuMemRelease(handle));
	CHECK(free_now() == start - n);
	OK(cuMemRelease(again));
	CHECK(free_now() == start);
	CHECK(cuMemRelease(handle) == 1);

	int fd = -1, devices; /* a second handle to the same memory, where there are two devices not of the current one */
	struct memory_prop other = prop;
	OK(cuDeviceGetCount(&devices));
	other.location.id = devices > 1;
	OK(cuMemCreate(&handle, n, &other, 0));
	OK(cuMemExportToShareableHandle(&fd, handle, 1, 0));
	OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, 1));
	OK(cuMemMap(va, n, 0, again, 0)); /* only a mapping says how large an import is */
	OK(cuMemUnmap(va, n));
	CHECK(free_now() == (devices > 1 ? start : start - n));
	OK(cuMemRelease(again));
	OK(cuMemRelease(handle));

	struct memory_prop host = {.type = 1, .location = {3, 0}};
	OK(cuMemCreate(&handle, n, &host, 0)); /* host memory: no device pays */
	CHECK(free_now() == start);
	OK(cuMemRelease(handle));
	CHECK(cuMemCreate(&handle, start + 64 * MB, &prop, 0) == OUT_OF_MEMORY);
	OK(cuMemCreate(&handle, n, &prop, 0));
	OK(cuMemAddressFree(va, 4 * n));
	return 0; /* 16 MB stay */
}
