/* SPDX-License-Identifier: MIT */
/* Thirty-two streams and as many events are made in advance; the work takes them in turn. */
#include "../../apps/gpu.h"

int cudaEventCreate(void **);

enum { STREAMS = 32 };

int main(void)
{
	void *streams[STREAMS], *events[STREAMS], *p;

	for (int i = 0; i < STREAMS; i++) {
		OK(cudaStreamCreate(&streams[i]));
		OK(cudaEventCreate(&events[i]));
	}
	for (int i = 0; i < 600; i++) {
		OK(cudaMallocAsync(&p, 50000, streams[i % STREAMS]));
		OK(cudaFreeAsync(p, streams[i % STREAMS]));
	}
	return 0;
}
