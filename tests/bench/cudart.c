/* SPDX-License-Identifier: MIT */
/* A runtime and driver whose calls do next to nothing, and PyTorch's report of a block: what a bench measures is the agent. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
int cuStreamSynchronize(void *stream);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
		   void *stream, void **params, void **extra);
int cuKernelGetFunction(void **function, void *kernel);
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device);
int cudaSetDevice(int device);
int cudaEventRecord(void *event, void *stream);
int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int cuStreamIsCapturing(void *stream, int *status);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);

void report(void *block, int64_t bytes, size_t allocated, size_t reserved,
	    uint64_t device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void *stream(const void *self) __asm__("_ZNK3c104cuda10CUDAStream6streamEv");
uint64_t roundup(uint64_t bytes) __asm__("_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm");
void report_blocks(unsigned long count);
double report_cold(unsigned long count);
void products(int count);

#define CUDA_DEVICE_0 1 /* c10::Device: type in the low byte, ordinal above */

static __thread uintptr_t next;

int cudaMalloc(void **p, size_t bytes)
{
	if (bytes == SIZE_MAX)
		return 2; /* out of memory */
	*p = (void *)(0x7f0000000000 + (next++ % 4096 << 9));
	return 0;
}

int cudaFree(void *p)
{
	return 0;
}

int cuStreamSynchronize(void *stream)
{
	return 0;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
		   void *stream, void **params, void **extra)
{
	return 0;
}

int cuKernelGetFunction(void **function, void *kernel)
{
	*function = (char *)kernel + 8;
	return 0;
}

int cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
	return 0;
}

int cudaSetDevice(int device)
{
	return 0;
}

int cudaEventRecord(void *event, void *stream)
{
	return 0;
}

int cuCtxGetCurrent(void **context)
{
	*context = &cuCtxGetCurrent; /* some address */
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

void report(void *block, int64_t bytes, size_t allocated, size_t reserved, uint64_t device)
{
}

void *stream(const void *self)
{
	return (void *)self;
}

uint64_t roundup(uint64_t bytes)
{
	return 0;
}

/* Reports blocks, made and freed by turns, with the calls that PyTorch's allocator makes before each report. */
void report_blocks(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		void *block = (void *)(0x7f0000000000 + (i / 2 % 4096 << 9));

		if (i & 1) {
			report(block, -512, 1ul << 30, 1ul << 31, CUDA_DEVICE_0);
			continue;
		}
		stream(NULL);
		roundup(512);
		report(block, 512, 512 + (1ul << 30), 1ul << 31, CUDA_DEVICE_0);
	}
}

/* The calls of cuBLAS and PyTorch for a product on a GPU: of 78 kernels, as in a recording of a validation of a large model. */
void products(int count)
{
	static __thread unsigned turn;
	void *function;

	for (int i = 0; i < count; i++, turn++) {
		void *kernel = (void *)(0x5600000000 + (uintptr_t)(turn % 78) * 64);

		cudaSetDevice(0);
		for (int twice = 0; twice < 2; twice++) {
			cuKernelGetFunction(&function, kernel);
			cuKernelSetAttribute(8, 1 << 16, kernel, 0);
		}
		cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		cudaEventRecord(function, NULL);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The middle time of a report where 4 MB were touched before it, less that of reading the clock. */
double report_cold(unsigned long count)
{
	static char much[4 << 20];
	static uint64_t took[1 << 16];

	for (unsigned long i = 0; i < count && i < sizeof(took) / sizeof(*took); i++) {
		uint64_t begin_ns, empty_ns;

		for (size_t at = 0; at < sizeof(much); at += 64)
			much[at]++;
		begin_ns = now_ns();
		empty_ns = now_ns();
		report_blocks(2);
		took[i] = now_ns() - empty_ns - (empty_ns - begin_ns);
	}
	for (unsigned long i = 1; i < count; i++) /* few are far from their place where the machine is quiet */
		for (unsigned long j = i; j && took[j] < took[j - 1]; j--) {
			uint64_t less = took[j];

			took[j] = took[j - 1];
			took[j - 1] = less;
		}
	return (double)took[count / 2] / 2;
}
