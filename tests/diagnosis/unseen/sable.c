/* SPDX-License-Identifier: MIT */
/* Four ranks. Each asks every device how much memory it has, which makes a context there, and settles on its own. */
#include <unistd.h>

#include "../../apps/gpu.h"

static size_t free_on(int device)
{
	size_t available, total;
	void *probe;
	OK(cudaSetDevice(device));
	OK(cudaMalloc(&probe, 64 * 1024)); /* CULPRIT */
	OK(cudaMemGetInfo(&available, &total));
	OK(cudaFree(probe));
	return available;
}

static size_t survey(void)
{
	size_t least = SIZE_MAX;
	for (int device = 0; device < 1; device++) { /* the others were left out when there was one */
		size_t available = free_on(device);  /* CULPRIT */
		least = available < least ? available : least;
	}
	return least;
}

int main(void)
{
	const char *rank = getenv("LOCAL_RANK");
	void *halo, *domain;
	CHECK(rank && survey() > 0);
	OK(cudaSetDevice(atoi(rank)));
	OK(cudaMalloc(&domain, 300 * MB));
	for (int i = 0; i < 100; i++) {
		OK(cudaMalloc(&halo, 2 * MB));
		usleep(1000);
		OK(cudaFree(halo));
	}
	return cudaFree(domain);
}
