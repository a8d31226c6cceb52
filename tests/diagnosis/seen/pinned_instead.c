/* SPDX-License-Identifier: MIT */
/* Healthy: tables go to the device as long as there is room, the rest to pinned or managed memory; then the work begins. */
#include "../../apps/gpu.h"

static void *table(size_t bytes, int managed)
{
	void *at;

	if (cudaMalloc(&at, bytes)) {
		cudaGetLastError();
		if (managed)
			OK(cudaMallocManaged(&at, bytes, 1));
		else
			OK(cudaMallocHost(&at, bytes));
	}
	return at;
}

int main(void)
{
	void *tables[12], *work;

	for (int i = 0; i < 12; i++)
		tables[i] = table(1024 * MB, i & 1);
	for (int i = 0; i < 200; i++) {
		OK(cudaMalloc(&work, 2 * MB));
		OK(cudaFree(work));
	}
	return tables[11] == 0;
}
