/* SPDX-License-Identifier: MIT */
/* contexts: which memory ends with a context, with the last reference to the primary one, and with its reset, and which does not. */
#include "gpu.h"

int cuCtxCreate_v2(void **, unsigned, int);
int cuCtxDestroy_v2(void *);
int cuDevicePrimaryCtxRelease_v2(int);
int cuDevicePrimaryCtxReset_v2(int);
int cuMemAlloc_v2(address *, size_t);
int cuMemAllocHost_v2(void **, size_t);
int cuMemAllocManaged(address *, size_t, unsigned);

static void fill(size_t bytes)
{
	address p;
	void *host;
	OK(cuMemAlloc_v2(&p, bytes));
	OK(cuMemAllocManaged(&p, bytes, 1));
	OK(cuMemAllocHost_v2(&host, 4096));
	OK(cuMemAlloc_v2(&p, bytes));
	OK(cuMemFree_v2(p));
}

int main(void)
{
	void *primary, *one, *two, *again, *own;
	address kept, apart;
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&own, 0, 0));
	OK(cuMemAlloc_v2(&apart, 8 * MB));
	OK(cuDevicePrimaryCtxReset_v2(0)); /* there is none: what the current context holds stays */
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(primary == again);
	OK(cuCtxSetCurrent(primary));
	fill(MB);
	OK(cuCtxCreate_v2(&one, 0, 0));
	fill(2 * MB);
	OK(cuCtxCreate_v2(&two, 0, 0));
	OK(cuMemAlloc_v2(&kept, 3 * MB));
	OK(cuCtxDestroy_v2(one)); /* not the current one: only its own blocks go */
	OK(cuMemFree_v2(kept));
	OK(cuMemAlloc_v2(&kept, 4 * MB));
	OK(cuCtxDestroy_v2(two));
	OK(cuCtxSetCurrent(primary));
	OK(cuDevicePrimaryCtxRelease_v2(0)); /* one reference is left: all blocks stay */
	OK(cuMemAlloc_v2(&kept, 5 * MB));
	OK(cuMemFree_v2(kept));
	OK(cuDevicePrimaryCtxRelease_v2(0)); /* the last reference: the blocks go */
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	fill(6 * MB);
	OK(cuCtxSetCurrent(own));
	OK(cuDevicePrimaryCtxReset_v2(0)); /* ends the primary context, not the current one */
	OK(cuMemFree_v2(apart));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	fill(7 * MB); /* stays */
	return 0;
}
