/* SPDX-License-Identifier: MIT */
/* Each refinement of a mesh gives kernels' malloc a larger heap, and none takes it back. */
#include "../../apps/gpu.h"

enum { MALLOC_HEAP = 2 };

int cudaDeviceSetLimit(int limit, size_t value);
int cudaDeviceGetLimit(size_t *value, int limit);

static void more_heap(void)
{
	size_t have;
	OK(cudaDeviceGetLimit(&have, MALLOC_HEAP));
	OK(cudaDeviceSetLimit(MALLOC_HEAP, have + 192 * MB)); /* CULPRIT */
}

int main(void)
{
	void *base;
	OK(cudaMalloc(&base, 900 * MB));
	for (int pass = 0; pass < 60; pass++) {
		more_heap();
		for (int sweep = 0; sweep < 10; sweep++) {
			void *field;
			OK(cudaMalloc(&field, (size_t)(20 + sweep % 5) * MB));
			OK(cudaFree(field));
		}
	}
	OK(cudaFree(base));
	return 0;
}
