/* SPDX-License-Identifier: MIT */
/* A GPU runtime without a GPU: it hands out increasing addresses and calls the program's in_the_midst inside each call. */
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

/* Makes another hooked call inside, as a runtime calls the driver. */
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
