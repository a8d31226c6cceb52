/* SPDX-License-Identifier: MIT */
/* two_devices: memory on both, freed while the other one is current. */
#include "gpu.h"

int main(void)
{
	void *a, *b;
	int count, device;
	OK(cudaGetDeviceCount(&count));
	CHECK(count >= 2);
	OK(cudaSetDevice(0));
	OK(cudaMalloc(&a, MB));
	OK(cudaSetDevice(1));
	OK(cudaGetDevice(&device));
	CHECK(device == 1);
	OK(cudaMalloc(&b, 2 * MB));
	OK(cudaFree(a));
	OK(cudaSetDevice(0));
	OK(cudaMalloc(&a, 4 * MB));
	OK(cudaFree(b));
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&b, 8 * MB));
	CHECK(cudaSetDevice(count) == 101 && cudaGetLastError() == 101);
	return 0; /* 4 MB on device 0, 8 MB on device 1 */
}
