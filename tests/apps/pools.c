/* SPDX-License-Identifier: MIT */
/* pools: a stream can reuse at once what it freed; the pool keeps memory up to its threshold; trim gives it back. */
#include "gpu.h"

enum { THRESHOLD = 4, RESERVED = 5, USED = 7 };

static uint64_t get(void *pool, int which)
{
	uint64_t value = 0;
	OK(cudaMemPoolGetAttribute(pool, which, &value));
	return value;
}

int main(void)
{
	void *stream, *pool, *own, *p, *q;
	uint64_t keep = 64 * MB;
	OK(cudaStreamCreate(&stream));
	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaMallocAsync(&p, 10 * MB, stream));
	CHECK(get(pool, USED) == 10 * MB && get(pool, RESERVED) >= 10 * MB);
	OK(cudaFreeAsync(p, stream));
	CHECK(get(pool, USED) == 0 && get(pool, RESERVED) >= 10 * MB); /* as on an H200 */
	OK(cudaMallocAsync(&q, 10 * MB, stream));
	CHECK(p == q);
	OK(cudaFreeAsync(q, stream));
	OK(cudaStreamSynchronize(stream));
	CHECK(get(pool, USED) == 0 && get(pool, RESERVED) == 0);

	OK(cudaMemPoolSetAttribute(pool, THRESHOLD, &keep));
	OK(cudaMallocAsync_ptsz(&p, 20 * MB, NULL));
	OK(cudaFree(p)); /* a plain free of stream-ordered memory */
	CHECK(get(pool, RESERVED) >= 20 * MB);
	OK(cudaMemPoolTrimTo(pool, 0));
	CHECK(get(pool, RESERVED) == 0);
	OK(cudaMalloc(&p, MB));
	OK(cudaFreeAsync(p, stream)); /* a stream-ordered free of plain memory */

	size_t there, total;
	OK(cudaMemGetInfo(&there, &total));
	OK(cudaMallocAsync(&p, there / 4 * 3, stream));
	OK(cudaFreeAsync(p, stream));
	OK(cudaMallocAsync(&p, there / 4 * 3, NULL)); /* the driver waits until the other stream has freed its block */
	OK(cudaFreeAsync(p, NULL));

	struct pool_props props = {.alloc_type = 1, .location = {1, 0}};
	OK(cudaMemPoolCreate(&own, &props));
	OK(cudaMallocFromPoolAsync(&p, 3 * MB, own, stream));
	OK(cudaMallocFromPoolAsync(&q, 5 * MB, own, stream));
	OK(cudaFreeAsync(p, stream));
	OK(cudaMemPoolDestroy(own)); /* the pool lives until its last block is freed */
	OK(cudaFreeAsync(q, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaMallocAsync(&p, MB, stream));
	return 0; /* 1 MB stays */
}
