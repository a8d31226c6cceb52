/* SPDX-License-Identifier: MIT */
/* Calls of the driver, linked: contexts, memory of every plain kind, and blocks that go with a destroyed context. */
#include "gpu.h"

int main(void)
{
	void *ctx, *pinned, *module, *function;
	address p, q, base;
	size_t pitch, size, free_before, free_after, total;
	static char own[4096] __attribute__((aligned(4096)));

	CHECK(cuMemAlloc_v2(&p, MB) == 3); /* not initialised */
	OK(cuInit(0));
	CHECK(cuMemAlloc_v2(&p, MB) == 201); /* no context */
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	CHECK(cuMemAlloc_v2(&p, 0) == 1);
	OK(cuMemAlloc_v2(&p, MB));
	OK(cuMemGetAddressRange_v2(&base, &size, p + 100));
	CHECK(base == p && size == MB);
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(0));
	OK(cuMemAlloc_v2(&q, MB));
	OK(cuMemAllocPitch_v2(&p, &pitch, 100, 7, 4));
	OK(cuMemFree_v2(p));
	OK(cuMemAllocManaged(&p, 3 * MB, 1));
	OK(cuMemFree_v2(p));
	OK(cuMemAllocHost_v2(&pinned, 4096));
	OK(cuMemFreeHost(pinned));
	OK(cuMemHostRegister_v2(own, sizeof own, 0));
	CHECK(cuMemHostRegister_v2(own, sizeof own, 0) == 712);
	OK(cuMemHostUnregister(own));
	CHECK(cuMemHostUnregister(own) == 713);
	OK(cuMemGetInfo_v2(&free_before, &total));
	OK(cuModuleLoadData(&module, own));
	OK(cuModuleGetFunction(&function, module, "kernel"));
	OK(cuMemGetInfo_v2(&free_after, &total));
	CHECK(free_after < free_before); /* code is loaded when it is first needed, and takes memory */
	OK(cuModuleUnload(module));
	OK(cuMemAlloc_v2(&p, 5 * MB));
	OK(cuMemHostAlloc(&pinned, MB, 0));
	OK(cuCtxDestroy_v2(ctx)); /* three blocks go with it */
	return 0;
}
