/* SPDX-License-Identifier: MIT */
/* A GPU runtime of nothing: addresses that count up, and in the midst of each call what the program wants. */
#include <stddef.h>
#include <stdint.h>

void (*in_the_midst)(void);
int cudaMalloc(void **, size_t), cudaMallocHost(void **, size_t), cudaFree(void *), cudaGetDevice(int *);

static uintptr_t next = 0x7f0000000000u;

static void midst(void)
{
	if (in_the_midst)
		in_the_midst();
}

/* A call of its own inside, as a runtime's of the driver. */
int cudaMallocHost(void **ptr, size_t size)
{
	return cudaMalloc(ptr, size);
}

int cudaMalloc(void **ptr, size_t size)
{
	midst();
	if (size == SIZE_MAX)
		return 2;
	*ptr = (void *)__atomic_fetch_add(&next, (size + 511) & ~(size_t)511, __ATOMIC_SEQ_CST);
	return 0;
}

int cudaFree(void *ptr)
{
	midst();
	return 0;
}

int cudaGetDevice(int *device)
{
	*device = 0;
	return 0;
}
