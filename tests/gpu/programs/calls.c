/* SPDX-License-Identifier: MIT */
/*
 * calls SUBJECT: uses one part of CUDA's memory functions.  Counts its own memory by kind and prints that as one JSON line, with
 * what NVML says of this process while all is still held: {"memory": {kind: {...}}, "nvml_bytes": N}.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define OK(call)                                                                                                                   \
	do {                                                                                                                       \
		int code_ = (int)(call);                                                                                           \
		if (code_) {                                                                                                       \
			fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, code_);                                              \
			exit(1);                                                                                                   \
		}                                                                                                                  \
	} while (0)

enum kind { DEVICE, POOL, MANAGED, VMM, ARRAY, GRAPH, IMPORTED, PINNED, REGISTERED, KINDS };
static const char *const kind_names[] = {"device",   "pool",	    "managed",	      "vmm", "array", "graph",
					 "imported", "host_pinned", "host_registered"};
static struct books {
	size_t allocations, frees, allocated, live, peak;
} books[KINDS];

static void took(enum kind kind, size_t bytes)
{
	struct books *b = &books[kind];

	b->allocations++;
	b->allocated += bytes;
	b->live += bytes;
	if (b->live > b->peak)
		b->peak = b->live;
}

static void gave(enum kind kind, size_t bytes)
{
	books[kind].frees++;
	books[kind].live -= bytes;
}

/* Bytes that this process holds on device 0, by NVML; 0: unknown.  A single process is taken for this one, since pids differ in containers. */
static unsigned long long nvml_bytes(void)
{
	struct {
		unsigned pid;
		unsigned long long bytes;
		unsigned gpu, compute;
	} all[64];
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device;
	int (*init)(void) = library ? (int (*)(void))dlsym(library, "nvmlInit_v2") : NULL;
	int (*find)(unsigned, void **) =
		library ? (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2") : NULL;
	int (*processes)(void *, unsigned *, void *) =
		library ? (int (*)(void *, unsigned *, void *))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3") : NULL;
	unsigned count = 64;

	if (!init || !find || !processes || init() || find(0, &device) || processes(device, &count, all))
		return 0;
	for (unsigned i = 0; i < count; i++)
		if ((pid_t)all[i].pid == getpid() || count == 1)
			return all[i].bytes == ~0ull ? 0 : all[i].bytes;
	return 0;
}

static void say(void)
{
	printf("{\"memory\": {");
	for (int i = 0, first = 1; i < KINDS; i++) {
		if (!books[i].allocations)
			continue;
		printf("%s\"%s\": {\"allocations\": %zu, \"frees\": %zu, \"allocated_bytes\": %zu, \"live_bytes\": %zu, "
		       "\"peak_bytes\": %zu}",
		       first ? "" : ", ", kind_names[i], books[i].allocations, books[i].frees, books[i].allocated, books[i].live,
		       books[i].peak);
		first = 0;
	}
	printf("}, \"nvml_bytes\": %llu}\n", nvml_bytes());
	fflush(stdout);
}

/* A context and nothing else: the base of NVML's figure. */
static void context(void)
{
	OK(cudaFree(NULL));
}

static void runtime(void)
{
	void *blocks[8], *pitched, *pinned, *managed, *refused = NULL;
	size_t pitch, free_bytes, total;

	for (int i = 0; i < 8; i++) {
		OK(cudaMalloc(&blocks[i], (i + 1) * 33 * MIB));
		took(DEVICE, (i + 1) * 33 * MIB);
	}
	OK(cudaMallocPitch(&pitched, &pitch, 1000, 640));
	took(DEVICE, pitch * 640);
	OK(cudaFree(blocks[3]));
	gave(DEVICE, 4 * 33 * MIB);
	OK(cudaHostAlloc(&pinned, 3 * MIB, 0));
	took(PINNED, 3 * MIB);
	OK(cudaMallocHost(&pinned, MIB));
	took(PINNED, MIB);
	OK(cudaFreeHost(pinned));
	gave(PINNED, MIB);
	OK(cudaMallocManaged(&managed, 4 * MIB, cudaMemAttachGlobal));
	took(MANAGED, 4 * MIB);
	pinned = aligned_alloc(4096, MIB);
	OK(cudaHostRegister(pinned, MIB, 0));
	took(REGISTERED, MIB);
	OK(cudaHostUnregister(pinned));
	gave(REGISTERED, MIB);
	OK(cudaMemGetInfo(&free_bytes, &total));
	OK(cudaMalloc(&refused, total + MIB) != cudaErrorMemoryAllocation);
	cudaGetLastError();
}

static void driver(void)
{
	CUdeviceptr blocks[4], pitched;
	CUdevice device;
	CUcontext ctx, own;
	size_t pitch;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&ctx, device));
	OK(cuCtxSetCurrent(ctx));
	for (int i = 0; i < 4; i++) {
		OK(cuMemAlloc(&blocks[i], (i + 1) * 20 * MIB));
		took(DEVICE, (i + 1) * 20 * MIB);
	}
	OK(cuMemAllocPitch(&pitched, &pitch, 3000, 100, 4));
	took(DEVICE, pitch * 100);
	OK(cuMemFree(blocks[1]));
	gave(DEVICE, 40 * MIB);
#if CUDA_VERSION >= 13000
	OK(cuCtxCreate(&own, NULL, 0, device));
#else
	OK(cuCtxCreate(&own, 0, device));
#endif
	OK(cuMemAlloc(&blocks[1], 10 * MIB));
	took(DEVICE, 10 * MIB);
	OK(cuCtxDestroy(own)); /* the block goes with it: an implicit free */
	books[DEVICE].live -= 10 * MIB;
	OK(cuCtxSetCurrent(ctx));
}

static void pools(void)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
					 .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
	cudaMemPool_t own, usual;
	cudaStream_t stream;
	void *a, *b, *c;
	unsigned long long used = 0, reserved = 0, keep = ~0ull;

	OK(cudaStreamCreate(&stream));
	OK(cudaDeviceGetDefaultMemPool(&usual, 0));
	OK(cudaMemPoolSetAttribute(usual, cudaMemPoolAttrReleaseThreshold, &keep));
	OK(cudaMallocAsync(&a, 64 * MIB, stream));
	took(POOL, 64 * MIB);
	OK(cudaMallocAsync(&b, 5 * MIB, stream));
	took(POOL, 5 * MIB);
	OK(cudaFreeAsync(a, stream));
	gave(POOL, 64 * MIB);
	OK(cudaMemPoolCreate(&own, &props));
	OK(cudaMallocFromPoolAsync(&c, 12 * MIB, own, stream));
	took(POOL, 12 * MIB);
	OK(cudaFreeAsync(c, stream));
	gave(POOL, 12 * MIB);
	OK(cudaStreamSynchronize(stream));
	OK(cudaMemPoolTrimTo(own, 0));
	OK(cudaMemPoolDestroy(own));
	OK(cudaMemPoolGetAttribute(usual, cudaMemPoolAttrUsedMemCurrent, &used));
	OK(cudaMemPoolGetAttribute(usual, cudaMemPoolAttrReservedMemCurrent, &reserved));
	fprintf(stderr, "pool used %llu reserved %llu\n", used, reserved);
	if (used < books[POOL].live)
		exit(1);
}

static void vmm(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handles[3];
	CUdeviceptr place;
	size_t size = 32 * MIB;

	OK(cudaFree(NULL));
	OK(cuMemAddressReserve(&place, 3 * size, 0, 0, 0));
	for (int i = 0; i < 3; i++) {
		OK(cuMemCreate(&handles[i], size, &prop, 0));
		took(VMM, size);
		OK(cuMemMap(place + i * size, size, 0, handles[i], 0));
		OK(cuMemSetAccess(place + i * size, size, &access, 1));
		OK(cuMemRelease(handles[i])); /* the mapping keeps the memory */
	}
	OK(cuMemUnmap(place, size));
	gave(VMM, size);
}

static void graphs(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	void *a, *b;

	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaMallocAsync(&a, 16 * MIB, stream));
	took(GRAPH, 16 * MIB);
	OK(cudaMallocAsync(&b, 8 * MIB, stream));
	took(GRAPH, 8 * MIB);
	OK(cudaFreeAsync(b, stream));
	OK(cudaFreeAsync(a, stream));
	OK(cudaStreamEndCapture(stream, &graph));
#if CUDART_VERSION >= 12000
	OK(cudaGraphInstantiate(&exec, graph, 0));
#else
	OK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
#endif
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaDeviceGraphMemTrim(0));
	books[GRAPH].live = 0;
}

static void arrays(void)
{
	struct cudaChannelFormatDesc floats = {32, 32, 32, 32, cudaChannelFormatKindFloat};
	struct cudaExtent extent = {256, 256, 64};
	cudaArray_t flat, cube;

	OK(cudaMallocArray(&flat, &floats, 1024, 1024, 0));
	took(ARRAY, 16 * MIB);
	OK(cudaMalloc3DArray(&cube, &floats, extent, 0));
	took(ARRAY, 64 * MIB);
	OK(cudaFreeArray(flat));
	gave(ARRAY, 16 * MIB);
}

/* The child opens a block of the parent; the fork comes before any call of CUDA. */
static void ipc(void)
{
	int down[2], up[2], status;
	cudaIpcMemHandle_t handle;
	char go = 0;
	void *block;

	OK(pipe(down));
	OK(pipe(up));
	if (!fork()) {
		OK(read(down[0], &handle, sizeof handle) != sizeof handle);
		OK(cudaIpcOpenMemHandle(&block, handle, cudaIpcMemLazyEnablePeerAccess));
		OK(cudaIpcCloseMemHandle(block));
		exit(write(up[1], &go, 1) != 1);
	}
	OK(cudaMalloc(&block, 24 * MIB));
	took(DEVICE, 24 * MIB);
	OK(cudaIpcGetMemHandle(&handle, block));
	OK(write(down[1], &handle, sizeof handle) != sizeof handle);
	OK(read(up[0], &go, 1) != 1);
	OK(wait(&status) < 0);
	OK(status);
}

/* Allocates until the device refuses; then frees one block, and the same request is granted. */
static void oom(void)
{
	static void *blocks[4096];
	size_t free_bytes, total, size;
	int n = 0;

	OK(cudaMemGetInfo(&free_bytes, &total));
	size = free_bytes / 9 / (2 * MIB) * (2 * MIB);
	for (; n < 4096 && !cudaMalloc(&blocks[n], size); n++)
		took(DEVICE, size);
	cudaGetLastError();
	OK(cudaFree(blocks[--n]));
	gave(DEVICE, size);
	OK(cudaMalloc(&blocks[n], size));
	took(DEVICE, size);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} subjects[] = {{"context", context}, {"runtime", runtime}, {"driver", driver}, {"pools", pools}, {"vmm", vmm},
			{"graphs", graphs},   {"arrays", arrays},   {"ipc", ipc},	{"oom", oom}};

	for (size_t i = 0; argc > 1 && i < sizeof subjects / sizeof *subjects; i++) {
		if (strcmp(argv[1], subjects[i].name))
			continue;
		subjects[i].run();
		say();
		_exit(0); /* all of it is still held: the report's live bytes are NVML's */
	}
	return 2;
}
