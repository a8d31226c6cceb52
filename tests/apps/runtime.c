/* SPDX-License-Identifier: MIT */
/* runtime [LEAK_BLOCKS]: every plain kind of memory through the CUDA runtime, once; some blocks stay. */
#include "gpu.h"

int main(int argc, char **argv)
{
	void *p, *q, *r, *managed, *pinned, *async;
	size_t pitch, free_before, free_after, total;
	struct pitched cube;
	static char own[8192] __attribute__((aligned(4096)));

	OK(cudaFree(NULL)); /* the idiom that makes a context */
	OK(cudaMemGetInfo(&free_before, &total));
	OK(cudaMalloc(&p, 3 * MB));
	OK(cudaFree(p));
	OK(cudaMalloc(&q, 3 * MB));
	OK(cudaMalloc(&r, 0));
	CHECK(r == NULL);
	OK(cudaMallocPitch(&r, &pitch, 1000, 10));
	CHECK(pitch >= 1000);
	OK(cudaMalloc3D(&cube, (struct extent){100, 10, 3}));
	OK(cudaMallocManaged(&managed, MB, 1));
	memset(managed, 1, MB);
	OK(cudaMallocHost(&pinned, 2 * MB));
	memset(pinned, 2, 2 * MB);
	OK(cudaHostRegister(own, sizeof own, 0));
	OK(cudaMallocAsync(&async, 5 * MB, NULL));
	OK(cudaMemset(q, 0, 3 * MB));
	OK(cudaFreeAsync(async, NULL));
	OK(cudaDeviceSynchronize());
	OK(cudaHostUnregister(own));
	OK(cudaFreeHost(pinned));
	OK(cudaFree(managed));
	OK(cudaFree(cube.ptr));
	OK(cudaFree(r));
	OK(cudaFree(q));
	CHECK(cudaFree(q) == 1 && cudaGetLastError() == 1 && cudaGetLastError() == 0);
	OK(cudaMemGetInfo(&free_after, &total));
	CHECK(free_after == free_before);
	for (int i = 0, n = argc > 1 ? atoi(argv[1]) : 0; i < n; i++)
		OK(cudaMalloc(&p, (i + 1) * 1000));
	return 0;
}
