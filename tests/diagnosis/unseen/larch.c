/* SPDX-License-Identifier: MIT */
/* Four ranks; the first collects the pieces of all at each of five outputs, in a buffer that it makes and gives back. */
#include <unistd.h>

#include "../../apps/gpu.h"

static float *array(size_t n)
{
	void *p;
	OK(cudaMalloc(&p, n * sizeof(float)));
	return p;
}

static void output(int rank, int size, size_t n)
{
	if (rank)
		return;
	float *whole = array(n * (size_t)size);
	usleep(2000);
	OK(cudaFree(whole));
}

int main(void)
{
	int rank = atoi(getenv("RANK")), size = atoi(getenv("WORLD_SIZE"));
	size_t n = 12000000;
	OK(cudaSetDevice(rank));
	float *piece = array(n);
	for (int i = 0; i < 100; i++) {
		float *work = array(n / 3);
		usleep(300);
		OK(cudaFree(work));
		if (i % 20 == 19)
			output(rank, size, n);
	}
	return cudaFree(piece);
}
