/* SPDX-License-Identifier: MIT */
/* A runtime and driver whose calls cost nothing: what remains in bench_calls is the agent. */
#include <stddef.h>
#include <stdint.h>

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int cuStreamIsCapturing(void *stream, int *status);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);

static __thread uintptr_t next;

int cudaMalloc(void **p, size_t bytes)
{
	*p = (void *)(0x7f0000000000 + (next++ % 4096 << 9));
	return 0;
}

int cudaFree(void *p)
{
	return 0;
}

int cuCtxGetCurrent(void **context)
{
	*context = &next;
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	*status = 0;
	return 0;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	*free_bytes = 1ull << 34;
	*total = 1ull << 35;
	return 0;
}
