/* SPDX-License-Identifier: MIT */
/* reset: cudaDeviceReset frees everything on the device, and the program goes on allocating. */
#include "gpu.h"

int main(void)
{
	void *p[10], *pinned, *managed, *async;
	for (int i = 0; i < 10; i++)
		OK(cudaMalloc(&p[i], (i + 1) * MB));
	OK(cudaMallocHost(&pinned, MB));
	OK(cudaMallocManaged(&managed, MB, 1));
	OK(cudaMallocAsync(&async, MB, NULL));
	OK(cudaFree(p[0]));
	OK(cudaDeviceReset());
	CHECK(cudaFree(p[1]) != 0);
	cudaGetLastError();
	OK(cudaMalloc(&p[0], 3 * MB));
	OK(cudaFree(p[0]));
	OK(cudaMalloc(&p[0], 5 * MB));
	return 0;
}
