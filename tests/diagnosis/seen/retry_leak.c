/* SPDX-License-Identifier: MIT */
/* A sort that tries with a small buffer first. When it was too small it takes a larger one, and loses the first. */
#include <stdbool.h>

#include "../../apps/gpu.h"

static int try_alloc(void **p, size_t bytes)
{
	for (int attempt = 0; attempt < 3; attempt++)
		if (!cudaMalloc(p, bytes))
			return 0;
	return -1;
}

static bool sort_with(void *buffer, size_t have, size_t want)
{
	return buffer && have >= want;
}

static int sort_keys(size_t keys)
{
	size_t guess = 256 * 1024;
	void *buffer = NULL, *larger = NULL;
	if (try_alloc(&buffer, guess)) /* CULPRIT */
		return -1;
	if (!sort_with(buffer, guess, keys * 8)) {
		if (try_alloc(&larger, keys * 8))
			return -1;
		buffer = larger;
	}
	cudaFree(buffer);
	return 0;
}

int main(void)
{
	void *keys = NULL;
	srand(2);
	OK(cudaMalloc(&keys, 10 * MB));
	for (int i = 0; i < 1500; i++)
		CHECK(!sort_keys(10000 + rand() % 40000));
	OK(cudaFree(keys));
	return 0;
}
