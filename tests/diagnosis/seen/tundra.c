/* SPDX-License-Identifier: MIT */
/* Five ranks in a ring. The last keeps every halo it receives, since its neighbour never asks for it back. */
#include <unistd.h>

#include "../../apps/gpu.h"

static int rank, size;

static double *vec_alloc(size_t n)
{
	void *p;
	OK(cudaMalloc(&p, n * sizeof(double)));
	return p;
}

static double *receive_halo(size_t n)
{
	return vec_alloc(n); /* CULPRIT */
}

static void iterate(void)
{
	double *flux = vec_alloc(300000);
	double *halo = receive_halo(99000); /* CULPRIT */
	if (rank + 1 < size)
		OK(cudaFree(halo));
	OK(cudaFree(flux));
	usleep(500);
}

int main(void)
{
	rank = atoi(getenv("RANK"));
	size = atoi(getenv("WORLD_SIZE"));
	OK(cudaSetDevice(rank));
	double *domain = vec_alloc(20000000);
	for (int i = 0; i < 220; i++)
		iterate();
	return cudaFree(domain);
}
