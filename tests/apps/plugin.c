/* SPDX-License-Identifier: MIT */
/* A library with a CUDA runtime of its own inside, as cuBLAS has: nobody outside sees its calls by name. */
#include "gpu.h"

__attribute__((visibility("default"))) void *plugin_allocate(size_t bytes);
__attribute__((visibility("default"))) void plugin_release(void *p);

void *plugin_allocate(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

void plugin_release(void *p)
{
	OK(cudaFree(p));
}
