/* SPDX-License-Identifier: MIT */
/* Four ranks that ask every device how much of it is free before they take theirs; that makes a context on each. */
#include <unistd.h>

#include "../../apps/gpu.h"

static size_t free_bytes(int device)
{
	size_t free_now, total;
	OK(cudaSetDevice(device));
	OK(cudaFree(0)); /* CULPRIT */
	OK(cudaMemGetInfo(&free_now, &total));
	return free_now;
}

static void survey(void)
{
	int count;
	OK(cudaGetDeviceCount(&count));
	for (int device = 0; device < count; device++)
		fprintf(stderr, "device %d: %zu MiB free\n", device, free_bytes(device) >> 20); /* CULPRIT */
}

int main(void)
{
	void *model[8], *batch;
	survey(); /* CULPRIT */
	OK(cudaSetDevice(atoi(getenv("LOCAL_RANK"))));
	for (int i = 0; i < 8; i++)
		OK(cudaMalloc(&model[i], 32 * MB));
	for (int step = 0; step < 80; step++) {
		OK(cudaMalloc(&batch, 5 * MB));
		usleep(800);
		OK(cudaFree(batch));
	}
	for (int i = 0; i < 8; i++)
		OK(cudaFree(model[i]));
	return 0;
}
