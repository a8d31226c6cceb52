/* SPDX-License-Identifier: MIT */
/* Stream-ordered memory from the default pool, which may keep a gigabyte: it fills in the first requests, and is used again. */
#include "../../apps/gpu.h"

enum { RELEASE_THRESHOLD = 4 };

static void request(void *stream, int parts)
{
	void *p[8];
	for (int i = 0; i < parts; i++)
		OK(cudaMallocAsync(&p[i], 8 * MB, stream));
	for (int i = 0; i < parts; i++)
		OK(cudaFreeAsync(p[i], stream));
	OK(cudaStreamSynchronize(stream));
}

int main(void)
{
	void *stream, *pool;
	uint64_t keep = GB;
	OK(cudaStreamCreate(&stream));
	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &keep));
	for (int i = 0; i < 300; i++)
		request(stream, 2 + i % 7);
	OK(cudaStreamDestroy(stream));
	return 0;
}
