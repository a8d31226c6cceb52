/* SPDX-License-Identifier: MIT */
/*
 * A library that allocates behind its program's back. Linked with the static runtime it is what cuBLAS is: nobody outside
 * sees its calls by name. Linked with a shared one it brings a second runtime into the process.
 */
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
