/* SPDX-License-Identifier: MIT */
/* Every plain kind of memory through HIP, whose functions call one another. */
#include "gpu.h"

int main(void)
{
	void *p, *q, *pinned, *managed, *async;
	size_t pitch, f, total;
	OK(hipMalloc(&p, MB));
	OK(hipFree(p));
	OK(hipMalloc(&q, 2 * MB));
	OK(hipMallocHost(&pinned, 4096));
	memset(pinned, 1, 4096);
	OK(hipFreeHost(pinned));
	OK(hipHostMalloc(&pinned, 8192, 0));
	OK(hipHostFree(pinned));
	OK(hipMallocPitch(&p, &pitch, 1000, 3));
	OK(hipFree(p));
	OK(hipMallocManaged(&managed, MB, 1));
	OK(hipFree(managed));
	OK(hipMallocAsync(&async, 3 * MB, NULL));
	OK(hipFreeAsync(async, NULL));
	OK(hipMemGetInfo(&f, &total));
	CHECK(hipMalloc(&p, total + 1) == OUT_OF_MEMORY);
	CHECK(hipGetLastError() == OUT_OF_MEMORY && hipGetLastError() == 0);
	return 0; /* 2 MB stay */
}
