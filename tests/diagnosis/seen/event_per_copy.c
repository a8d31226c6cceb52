/* SPDX-License-Identifier: MIT */
/* A copier records an event for each copy and frees its staging buffer when the event is over; the event itself stays. */
#include "../../apps/gpu.h"

int cudaEventCreateWithFlags(void **, unsigned);
int cudaEventRecord(void *, void *);
int cudaEventQuery(void *);

struct copy {
	void *staging, *done;
	struct copy *next;
};
static struct copy *flying;

static void submit(void *stream, size_t bytes)
{
	struct copy *copy = malloc(sizeof *copy);
	OK(cudaMallocHost(&copy->staging, bytes));
	OK(cudaEventCreateWithFlags(&copy->done, 2)); /* CULPRIT */
	OK(cudaEventRecord(copy->done, stream));
	copy->next = flying;
	flying = copy;
}

static void reap(void)
{
	while (flying && !cudaEventQuery(flying->done)) {
		struct copy *copy = flying;
		flying = copy->next;
		OK(cudaFreeHost(copy->staging));
		free(copy);
	}
}

int main(void)
{
	void *stream, *target;
	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&target, 32 * MB));
	for (int i = 0; i < 1500; i++) {
		submit(stream, 4096 * (1 + i % 5));
		if (i % 3 == 2)
			reap();
	}
	OK(cudaStreamSynchronize(stream));
	reap();
	OK(cudaFree(target));
	return 0;
}
