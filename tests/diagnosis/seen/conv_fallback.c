/* SPDX-License-Identifier: MIT */
/* Convolutions: the fast algorithm if its workspace fits, else the small one; a large image comes every sixty, and is the last. */
#include "../../apps/gpu.h"

static void convolve(size_t pixels)
{
	void *space;
	if (cudaMalloc(&space, pixels * 600)) {
		cudaGetLastError();
		OK(cudaMalloc(&space, pixels * 10));
	}
	OK(cudaFree(space));
}

int main(void)
{
	void *image;
	OK(cudaMalloc(&image, 6000 * MB));
	for (int i = 0; i < 480; i++)
		convolve(i % 60 == 59 ? 4000000 : 500000 + i % 13 * 1000);
	OK(cudaFree(image));
}
