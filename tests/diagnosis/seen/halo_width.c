/* SPDX-License-Identifier: MIT */
/* A stencil on six ranks. One of them was given a wider halo by a rule that was meant for the last one. */
#include <unistd.h>

#include "../../apps/gpu.h"

struct field {
	void *inner, *halo, *send, *receive;
};

static void *device(size_t bytes)
{
	void *p = NULL;

	if (cudaMalloc(&p, bytes))
		exit(1);
	return p;
}

static void make(struct field *f, int rank, int ranks)
{
	size_t width = rank == ranks - 2 ? 40 : 4;

	f->inner = device(24 * MB);
	f->halo = device(width * MB); /* CULPRIT */
	f->send = device(2 * MB);
	f->receive = device(2 * MB);
}

int main(void)
{
	int rank = atoi(getenv("RANK")), ranks = atoi(getenv("WORLD_SIZE"));
	struct field fields[4];

	cudaSetDevice(rank);
	for (int i = 0; i < 4; i++)
		make(&fields[i], rank, ranks);
	for (int step = 0; step < 120; step++) {
		void *work = device(3 * MB);

		usleep(2000);
		cudaFree(work);
	}
	for (int i = 0; i < 4; i++) {
		cudaFree(fields[i].inner);
		cudaFree(fields[i].halo);
		cudaFree(fields[i].send);
		cudaFree(fields[i].receive);
	}
	return 0;
}
