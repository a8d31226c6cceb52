/* SPDX-License-Identifier: MIT */
/* arrays: plain, layered and sparse ones, mipmaps and views of their levels. */
#include "gpu.h"

int main(void)
{
	void *a, *b, *mip, *level, *sparse;
	struct channels f32 = {32, 0, 0, 0, 2}, rgba8 = {8, 8, 8, 8, 1};
	OK(cudaMallocArray(&a, &f32, 1024, 512, 0));
	OK(cudaMalloc3DArray(&b, &rgba8, (struct extent){256, 256, 4}, 1)); /* layered */
	OK(cudaMallocMipmappedArray(&mip, &f32, (struct extent){256, 256, 0}, 3, 0));
	OK(cudaGetMipmappedArrayLevel(&level, mip, 1));
	CHECK(cudaFreeArray(level) != 0);
	cudaGetLastError();
	OK(cudaMalloc3DArray(&sparse, &f32, (struct extent){4096, 4096, 0}, 0x40));
	OK(cudaFreeArray(sparse));
	OK(cudaFreeMipmappedArray(mip));
	OK(cudaFreeArray(a));
	return 0; /* b stays: 1 MB */
}
