/* SPDX-License-Identifier: MIT */
/* The few calls of the CUDA runtime that the examples make, found at run time: they build without CUDA. */
#ifndef EXAMPLES_CUDA_H
#define EXAMPLES_CUDA_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct cuda {
	int (*malloc)(void **address, size_t bytes);
	int (*free)(void *address);
	int (*malloc_host)(void **address, size_t bytes);
	int (*free_host)(void *address);
	int (*malloc_async)(void **address, size_t bytes, void *stream);
	int (*free_async)(void *address, void *stream);
	int (*synchronize)(void);
	int (*memory)(size_t *free_bytes, size_t *total);
	const char *(*error)(int code);
};

static inline struct cuda cuda_load(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"};
	void *library = NULL;

	for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "no libcudart.so: set LD_LIBRARY_PATH to where it is\n");
		exit(77);
	}
	return (struct cuda){
		dlsym(library, "cudaMalloc"),
		dlsym(library, "cudaFree"),
		dlsym(library, "cudaMallocHost"),
		dlsym(library, "cudaFreeHost"),
		dlsym(library, "cudaMallocAsync"),
		dlsym(library, "cudaFreeAsync"),
		dlsym(library, "cudaDeviceSynchronize"),
		dlsym(library, "cudaMemGetInfo"),
		dlsym(library, "cudaGetErrorString"),
	};
}

#endif
