/* SPDX-License-Identifier: MIT */
/* Looks for the largest workspace that there is, by halves, and goes on with what it found. */
#include "../../apps/gpu.h"

static void *workspace(size_t *bytes)
{
	for (void *p; *bytes >= MB; *bytes /= 2) {
		if (!cudaMalloc(&p, *bytes))
			return p;
		cudaGetLastError();
	}
	fprintf(stderr, "no workspace at all\n");
	exit(1);
}

int main(void)
{
	size_t bytes = 12 * GB;
	void *data, *space;
	OK(cudaMalloc(&data, GB));
	space = workspace(&bytes);
	for (int i = 0; i < 300; i++) {
		void *column;
		OK(cudaMalloc(&column, 2 * MB));
		OK(cudaFree(column));
	}
	OK(cudaFree(space));
	OK(cudaFree(data));
	return 0;
}
