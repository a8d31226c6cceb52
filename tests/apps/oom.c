/* SPDX-License-Identifier: MIT */
/* oom [retry]: asks for more than there is; with retry it empties its cache and asks again, as PyTorch does. */
#include "gpu.h"

int main(int argc, char **argv)
{
	void *cache[64], *p = NULL;
	size_t f, total;
	int n = 0;
	OK(cudaMemGetInfo(&f, &total));
	size_t block = total / 16;
	while (n < 64 && cudaMalloc(&cache[n], block) == 0)
		n++;
	CHECK(n > 0 && n < 64);
	CHECK(cudaGetLastError() == OUT_OF_MEMORY);
	CHECK(cudaGetLastError() == 0);
	CHECK(cudaMalloc(&p, block) == OUT_OF_MEMORY);
	CHECK(cudaGetLastError() == OUT_OF_MEMORY);
	if (argc > 1 && !strcmp(argv[1], "retry")) {
		OK(cudaFree(cache[--n]));
		OK(cudaMalloc(&p, block));
		OK(cudaFree(p));
	}
	while (n)
		OK(cudaFree(cache[--n]));
	return 0;
}
