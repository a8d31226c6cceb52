/* SPDX-License-Identifier: MIT */
/* Stream-ordered buffers in two streams. What goes to the second is freed when an event says so, and the event is asked only sometimes. */
#include "../../apps/gpu.h"

struct lane {
	void *stream;
	void *waiting[4000];
	int count;
};

static void *lane_alloc(struct lane *lane, size_t bytes)
{
	void *p = NULL;
	int error = cudaMallocAsync(&p, bytes, lane->stream);
	CHECK(!error);
	return p;
}

static void compute(struct lane *lane, int i)
{
	void *p = lane_alloc(lane, 3000000 + 1000 * (size_t)(i % 7));
	OK(cudaFreeAsync(p, lane->stream));
}

static void transfer(struct lane *lane, int i)
{
	void *p = lane_alloc(lane, 1 << 20); /* CULPRIT */
	if (i % 8 == 0)
		lane->waiting[lane->count++] = p; /* CULPRIT */
	else
		OK(cudaFreeAsync(p, lane->stream));
}

int main(void)
{
	static struct lane first, second;
	OK(cudaStreamCreate(&first.stream));
	OK(cudaStreamCreate(&second.stream));
	for (int i = 0; i < 1600; i++) {
		compute(&first, i);
		transfer(&second, i);
		if (i % 16 == 15)
			OK(cudaStreamSynchronize(second.stream));
	}
	for (int i = 0; i < second.count; i++)
		OK(cudaFreeAsync(second.waiting[i], second.stream));
	OK(cudaDeviceSynchronize());
	return 0;
}
