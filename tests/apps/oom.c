/* SPDX-License-Identifier: MIT */
/*
 * oom [retry]: asks for more than there is; with retry it empties its cache and asks again, as PyTorch does.
 * oom elsewhere pool|default|stream|graph: asks for more than device 1 has while device 0 is current; host: of a pool of the host, where
 * the simulator refuses it.
 */
#include "gpu.h"

int cudaGraphInstantiate(void **, void *, unsigned long long);
int cudaGraphLaunch(void *, void *);

static int elsewhere(const char *how)
{
	struct pool_props props = {.alloc_type = 1, .location = {1, 1}};
	void *pool = NULL, *stream, *graph, *exec, *p;
	size_t f, total;
	OK(cudaSetDevice(1));
	OK(cudaStreamCreate(&stream));
	OK(cudaSetDevice(0));
	OK(cudaMemGetInfo(&f, &total));
	if (!strcmp(how, "pool"))
		OK(cudaMemPoolCreate(&pool, &props));
	if (!strcmp(how, "host")) {
		props.location.type = 3;
		OK(cudaMemPoolCreate(&pool, &props));
		return cudaMallocFromPoolAsync(&p, 1 << 20, pool, NULL);
	}
	if (!strcmp(how, "default"))
		OK(cudaDeviceGetDefaultMemPool(&pool, 1));
	if (!strcmp(how, "graph")) {
		OK(cudaStreamBeginCapture(stream, 0));
		OK(cudaMallocAsync(&p, total, stream));
		OK(cudaStreamEndCapture(stream, &graph));
		OK(cudaGraphInstantiate(&exec, graph, 0));
		return cudaGraphLaunch(exec, stream);
	}
	OK(pool ? cudaMallocFromPoolAsync(&p, total / 2, pool, NULL) : cudaMallocAsync(&p, total / 2, stream));
	return pool ? cudaMallocFromPoolAsync(&p, total / 2, pool, NULL) : cudaMallocAsync(&p, total / 2, stream);
}

int main(int argc, char **argv)
{
	void *cache[64], *p = NULL;
	size_t f, total;
	int n = 0;
	if (argc > 2) {
		CHECK(elsewhere(argv[2]) == OUT_OF_MEMORY);
		return 0;
	}
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
