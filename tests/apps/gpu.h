/* SPDX-License-Identifier: MIT */
/* The declarations of CUDA and HIP that the small programs use, since they build without either, and macros for checks. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a check fails the program says so and exits 1. */
#define CHECK(condition)                                                                                                           \
	do {                                                                                                                       \
		if (!(condition)) {                                                                                                \
			fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
			exit(1);                                                                                                   \
		}                                                                                                                  \
	} while (0)
#define OK(call)                                                                                                                   \
	do {                                                                                                                       \
		int gpu_error = (call);                                                                                            \
		if (gpu_error) {                                                                                                   \
			fprintf(stderr, "%s:%d: %s = %d\n", __FILE__, __LINE__, #call, gpu_error);                                 \
			exit(1);                                                                                                   \
		}                                                                                                                  \
	} while (0)

#define MB (1ull << 20)
#define GB (1ull << 30)
enum { OUT_OF_MEMORY = 2 };

typedef uint64_t address;
struct extent {
	size_t width, height, depth;
};
struct pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct channels {
	int x, y, z, w, kind;
};
struct handle64 {
	char bytes[64];
};
struct location {
	int type, id;
};
struct pool_props { /* CUmemPoolProps, cudaMemPoolProps */
	int alloc_type, handle_types;
	struct location location;
	void *security;
	size_t max_size;
	unsigned short usage;
	unsigned char reserved[54];
};
struct memory_prop { /* CUmemAllocationProp */
	int type, handle_types;
	struct location location;
	void *windows;
	unsigned char flags[8];
};
struct access {
	struct location location;
	int flags;
};
struct alloc_node { /* CUDA_MEM_ALLOC_NODE_PARAMS */
	struct pool_props pool;
	const struct access *access;
	size_t access_count, bytes;
	address ptr;
};
struct node_params { /* CUgraphNodeParams */
	int type, reserved[3];
	union {
		struct alloc_node alloc;
		address free_ptr;
		long long pad[29];
	};
	long long reserved2;
};
struct array3d {
	size_t width, height, depth;
	unsigned format, channels, flags;
};

/* ---- runtime ---- */
int cudaMalloc(void **, size_t);
int cudaMallocPitch(void **, size_t *, size_t, size_t);
int cudaMalloc3D(struct pitched *, struct extent);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaMallocHost(void **, size_t);
int cudaHostAlloc(void **, size_t, unsigned);
int cudaHostRegister(void *, size_t, unsigned);
int cudaHostUnregister(void *);
int cudaFree(void *);
int cudaFreeHost(void *);
int cudaMallocAsync(void **, size_t, void *);
int cudaMallocAsync_ptsz(void **, size_t, void *);
int cudaFreeAsync(void *, void *);
int cudaFreeAsync_ptsz(void *, void *);
int cudaMallocFromPoolAsync(void **, size_t, void *, void *);
int cudaMemPoolCreate(void **, const struct pool_props *);
int cudaMemPoolDestroy(void *);
int cudaMemPoolTrimTo(void *, size_t);
int cudaMemPoolGetAttribute(void *, int, void *);
int cudaMemPoolSetAttribute(void *, int, void *);
int cudaDeviceGetDefaultMemPool(void **, int);
int cudaMallocArray(void **, const struct channels *, size_t, size_t, unsigned);
int cudaMalloc3DArray(void **, const struct channels *, struct extent, unsigned);
int cudaMallocMipmappedArray(void **, const struct channels *, struct extent, unsigned, unsigned);
int cudaGetMipmappedArrayLevel(void **, void *, unsigned);
int cudaFreeArray(void *);
int cudaFreeMipmappedArray(void *);
int cudaIpcGetMemHandle(struct handle64 *, void *);
int cudaIpcOpenMemHandle(void **, struct handle64, unsigned);
int cudaIpcCloseMemHandle(void *);
int cudaSetDevice(int);
int cudaGetDevice(int *);
int cudaGetDeviceCount(int *);
int cudaDeviceReset(void);
int cudaDeviceSynchronize(void);
int cudaMemGetInfo(size_t *, size_t *);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorString(int);
int cudaStreamCreate(void **);
int cudaStreamDestroy(void *);
int cudaStreamSynchronize(void *);
int cudaStreamBeginCapture(void *, int);
int cudaStreamEndCapture(void *, void **);
int cudaMemset(void *, int, size_t);
int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, int *);
int cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, int *);

/* ---- driver ---- */
int cuInit(unsigned);
int cuDeviceGet(int *, int);
int cuDeviceGetCount(int *);
int cuDevicePrimaryCtxRetain(void **, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuDevicePrimaryCtxReset_v2(int);
int cuDevicePrimaryCtxGetState(int, unsigned *, int *);
int cuCtxCreate_v2(void **, unsigned, int);
int cuCtxDestroy_v2(void *);
int cuCtxSetCurrent(void *);
int cuCtxGetCurrent(void **);
int cuCtxPopCurrent_v2(void **);
int cuCtxSynchronize(void);
int cuCtxSetLimit(int, size_t);
int cuMemGetInfo_v2(size_t *, size_t *);
int cuMemAlloc_v2(address *, size_t);
int cuMemAllocPitch_v2(address *, size_t *, size_t, size_t, unsigned);
int cuMemAllocManaged(address *, size_t, unsigned);
int cuMemFree_v2(address);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemAllocHost_v2(void **, size_t);
int cuMemFreeHost(void *);
int cuMemHostRegister_v2(void *, size_t, unsigned);
int cuMemHostUnregister(void *);
int cuMemGetAddressRange_v2(address *, size_t *, address);
int cuPointerGetAttribute(void *, int, address);
int cuMemAllocAsync(address *, size_t, void *);
int cuMemFreeAsync(address, void *);
int cuStreamCreate(void **, unsigned);
int cuStreamSynchronize(void *);
int cuMemCreate(address *, size_t, const struct memory_prop *, unsigned long long);
int cuMemRelease(address);
int cuMemRetainAllocationHandle(address *, void *);
int cuMemAddressReserve(address *, size_t, size_t, address, unsigned long long);
int cuMemAddressFree(address, size_t);
int cuMemMap(address, size_t, size_t, address, unsigned long long);
int cuMemUnmap(address, size_t);
int cuMemSetAccess(address, size_t, const struct access *, size_t);
int cuMemExportToShareableHandle(void *, address, int, unsigned long long);
int cuMemImportFromShareableHandle(address *, void *, int);
int cuArray3DCreate_v2(void **, const struct array3d *);
int cuArrayDestroy(void *);
int cuGraphCreate(void **, unsigned);
int cuGraphDestroy(void *);
int cuGraphAddMemAllocNode(void **, void *, void *const *, size_t, struct alloc_node *);
int cuGraphAddMemFreeNode(void **, void *, void *const *, size_t, address);
int cuGraphAddNode(void **, void *, void *const *, size_t, struct node_params *);
int cuGraphAddNode_v2(void **, void *, void *const *, const void *, size_t, struct node_params *);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphLaunch(void *, void *);
int cuGraphExecDestroy(void *);
int cuDeviceGraphMemTrim(int);
int cuDeviceGetGraphMemAttribute(int, int, void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuModuleUnload(void *);
int cuGetProcAddress(const char *, void **, int, uint64_t);
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

/* ---- HIP ---- */
int hipMalloc(void **, size_t);
int hipMallocPitch(void **, size_t *, size_t, size_t);
int hipMallocManaged(void **, size_t, unsigned);
int hipHostMalloc(void **, size_t, unsigned);
int hipMallocHost(void **, size_t);
int hipFreeHost(void *);
int hipHostFree(void *);
int hipFree(void *);
int hipMallocAsync(void **, size_t, void *);
int hipFreeAsync(void *, void *);
int hipMemGetInfo(size_t *, size_t *);
int hipSetDevice(int);
int hipGetLastError(void);
int hipDeviceReset(void);
