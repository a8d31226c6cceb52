/* SPDX-License-Identifier: MIT */
/* A library with two of the runtime's functions, so that a recording has something to begin with. */
#include <stdlib.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

int cudaMalloc(void **pointer, size_t bytes)
{
	return (*pointer = malloc(bytes)) ? 0 : 2;
}

int cudaFree(void *pointer)
{
	free(pointer);
	return 0;
}
