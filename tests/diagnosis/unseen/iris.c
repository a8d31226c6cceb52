/* SPDX-License-Identifier: MIT */
/* Eight ranks on four devices, each with its part of a domain that does not divide evenly, and halos whose size varies a little. */
#include <unistd.h>

#include "../../apps/gpu.h"

static void *field(size_t cells)
{
	void *p;
	OK(cudaMalloc(&p, cells * 8));
	return p;
}

int main(void)
{
	int rank = atoi(getenv("RANK"));
	srand((unsigned)rank + 1);
	OK(cudaSetDevice(rank % 4));
	size_t rows = 1000 / 8 + (rank < 1000 % 8);
	void *u = field(rows * 40000), *v = field(rows * 40000);
	for (int i = 0; i < 60; i++) {
		void *halo = field(80000 + (size_t)rand() % 8000);
		usleep(1000);
		OK(cudaFree(halo));
	}
	OK(cudaFree(u));
	return cudaFree(v);
}
