/* SPDX-License-Identifier: MIT */
/* A server makes nearly all that is free its cache, once.  Prompts get longer, and one does not fit beside it. */
#include "../../apps/gpu.h"

enum { PROMPTS = 40 };

static void *weights, *cache;

static void reserve(void)
{
	size_t free_bytes, total;

	OK(cudaMemGetInfo(&free_bytes, &total));
	OK(cudaMalloc(&cache, free_bytes / 100 * 95)); /* CULPRIT */
}

static void prefill(int tokens)
{
	void *scores;

	if (cudaMalloc(&scores, (size_t)tokens * MB))
		exit(3);
	OK(cudaFree(scores));
}

int main(void)
{
	OK(cudaMalloc(&weights, 700 * MB));
	reserve();
	for (int n = 0; n < PROMPTS; n++)
		prefill(n < PROMPTS - 1 ? 90 + n % 9 : 150);
	return 0;
}
