/* SPDX-License-Identifier: MIT */
/*
 * A library that allocates without its program knowing. Linked with the static runtime it is what cuBLAS is: nobody outside
 * sees its calls by name. Linked with a shared one it brings a second runtime into the process.
 */
#include "gpu.h"

#include <pthread.h>

__attribute__((visibility("default"))) void *plugin_allocate(size_t bytes);
__attribute__((visibility("default"))) void plugin_release(void *p);

/* Gives the value that this thread had under a key of this library's own, and keeps another. */
__attribute__((visibility("default"))) const void *plugin_swap(const void *value);

const void *plugin_swap(const void *value)
{
	static pthread_key_t key;
	static int made;
	const void *before;

	CHECK(made || !pthread_key_create(&key, NULL));
	made = 1;
	before = pthread_getspecific(key);
	CHECK(!pthread_setspecific(key, value));
	return before;
}

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
