/* SPDX-License-Identifier: MIT */
/* The largest batch that fits, found by bisection; then the work with it, from another function. */
#include "../../apps/gpu.h"

static int try_batch(size_t batch)
{
	void *p;
	if (cudaMalloc(&p, batch * 3 * MB)) {
		cudaGetLastError();
		return 0;
	}
	OK(cudaFree(p));
	return 1;
}

static size_t best_batch(size_t low, size_t high)
{
	while (high - low > 8) {
		size_t middle = (low + high) / 2;
		if (try_batch(middle))
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void work(size_t batch)
{
	void *p, *q;
	OK(cudaMalloc(&p, batch * 2 * MB));
	OK(cudaMalloc(&q, batch * MB / 2));
	OK(cudaFree(q));
	OK(cudaFree(p));
}

static void epoch(size_t batch)
{
	for (int step = 0; step < 30; step++)
		work(batch);
}

int main(void)
{
	epoch(best_batch(1, 8000));
	return 0;
}
