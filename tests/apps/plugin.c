/* SPDX-License-Identifier: MIT */
/*
 * A library that allocates without its program knowing.  Linked with the static runtime it is like cuBLAS: its calls of the runtime
 * cannot be interposed by name.  Linked with a shared one it brings a second runtime into the process.
 */
#include "gpu.h"

#include <pthread.h>

__attribute__((visibility("default"))) void *plugin_allocate(size_t bytes);
__attribute__((visibility("default"))) void plugin_release(void *p);

/* Returns this thread's value of a key of this library, and sets another. */
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
