/* SPDX-License-Identifier: MIT */
/*
 * Answers questions about a real driver that no document answers, as one JSON line.  Run without the agent.  With libnesting.so
 * preloaded, "nesting" lists the driver calls beneath each runtime call.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OK(call)                                                                                                                   \
	do {                                                                                                                       \
		int code_ = (int)(call);                                                                                           \
		if (code_) {                                                                                                       \
			fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, code_);                                              \
			exit(1);                                                                                                   \
		}                                                                                                                  \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Whether cuGetProcAddress returns the export of the same name, so that pointers could be compared. */
static void identity(void *driver)
{
	static const struct {
		const char *name, *export;
		int version;
	} asked[] = {{"cuMemAlloc", "cuMemAlloc_v2", 13000},
		     {"cuMemAlloc", "cuMemAlloc", 2000},
		     {"cuMemFree", "cuMemFree_v2", 13000},
		     {"cuMemCreate", "cuMemCreate", 13000},
		     {"cuMemAllocAsync", "cuMemAllocAsync", 13000},
		     {"cuCtxCreate", "cuCtxCreate_v2", 3020},
		     {"cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset", 7000},
		     {"cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", 11000},
		     {"cuGetProcAddress", "cuGetProcAddress", 11030},
		     {"cuGetProcAddress", "cuGetProcAddress_v2", 12000},
		     {"cuGraphAddNode", "cuGraphAddNode", 12020}};
	int (*find)(const char *, void **, int, cuuint64_t, void *) =
		(int (*)(const char *, void **, int, cuuint64_t, void *))dlsym(driver, "cuGetProcAddress_v2");

	printf("\"identity\": {");
	for (size_t i = 0; find && i < sizeof asked / sizeof *asked; i++) {
		void *found = NULL, *exported = dlsym(driver, asked[i].export);
		int status = -1, result = find(asked[i].name, &found, asked[i].version, 0, &status);

		printf("%s\"%s\": %s", i ? ", " : "", asked[i].export,
		       result || !found || !exported ? "null"
		       : found == exported	     ? "true"
						     : "false");
	}
	printf("}, ");
}

/* The driver calls since this was last called; NULL without libnesting.so. */
static const char *seen(void)
{
	const char *(*take)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "nesting_take");

	return take ? take() : "";
}

#define BENEATH(call)                                                                                                              \
	do {                                                                                                                       \
		seen();                                                                                                            \
		int result_ = (int)(call);                                                                                         \
		const char *text_ = seen();                                                                                        \
		printf("%s\"%s\": \"%d %s\"", first ? "" : ", ", strndup(#call, strcspn(#call, "(")), result_, text_);             \
		first = 0;                                                                                                         \
	} while (0)

static void nesting(void)
{
	struct cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	struct cudaExtent extent = {64, 64, 4};
	struct cudaPitchedPtr cube;
	cudaArray_t array;
	size_t pitch, free_bytes, total;
	void *p, *pinned;
	int first = 1;

	printf("\"nesting\": {");
	BENEATH(cudaMemGetInfo(&free_bytes, &total));
	BENEATH(cudaMalloc(&p, 1 << 20));
	BENEATH(cudaFree(p));
	BENEATH(cudaMallocPitch(&p, &pitch, 1000, 10));
	cudaFree(p);
	BENEATH(cudaMalloc3D(&cube, extent));
	cudaFree(cube.ptr);
	BENEATH(cudaMallocManaged(&p, 1 << 20, cudaMemAttachGlobal));
	cudaFree(p);
	BENEATH(cudaMallocHost(&pinned, 1 << 20));
	BENEATH(cudaFreeHost(pinned));
	BENEATH(cudaHostAlloc(&pinned, 1 << 20, 0));
	cudaFreeHost(pinned);
	BENEATH(cudaMallocAsync(&p, 1 << 20, NULL));
	BENEATH(cudaFreeAsync(p, NULL));
	BENEATH(cudaMallocArray(&array, &floats, 64, 64, 0));
	BENEATH(cudaFreeArray(array));
	BENEATH(cudaMalloc3DArray(&array, &floats, extent, 0));
	cudaFreeArray(array);
	BENEATH(cudaDeviceSynchronize());
	BENEATH(cudaDeviceReset());
	printf("}, ");
}

/* The cost of the questions that the agent asks the driver, in ns: the mean of a few hundred. */
static void costs(void)
{
	int (*init)(void) = NULL, (*find)(unsigned, void **) = NULL, (*memory)(void *, void *) = NULL,
	    (*processes)(void *, unsigned *, void *) = NULL;
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device, *p;
	unsigned long long info[3];
	static char usage[64 * 24];
	size_t free_bytes, total;
	double start = now();

	for (int i = 0; i < 300; i++)
		OK(cuMemGetInfo(&free_bytes, &total));
	printf("\"cuMemGetInfo_ns\": %.0f, ", (now() - start) / 300);
	start = now();
	for (int i = 0; i < 300; i++) {
		OK(cudaMalloc(&p, 2 << 20));
		OK(cudaFree(p));
	}
	printf("\"cudaMalloc_and_cudaFree_ns\": %.0f, ", (now() - start) / 300);
	if (!library)
		return;
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	*(void **)&find = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	start = now();
	if (init() || find(0, &device))
		return;
	printf("\"nvmlInit_ns\": %.0f, ", now() - start);
	start = now();
	for (int i = 0; i < 100; i++)
		memory(device, info);
	printf("\"nvmlDeviceGetMemoryInfo_ns\": %.0f, ", (now() - start) / 100);
	start = now();
	for (int i = 0; i < 100; i++) {
		unsigned count = 64;
		processes(device, &count, usage);
	}
	printf("\"nvmlDeviceGetComputeRunningProcesses_ns\": %.0f, ", (now() - start) / 100);
}

/* Whether questions during a capture invalidate it: result codes, 0 if they do not. */
static void capture(void)
{
	enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
					      cudaStreamCaptureModeRelaxed};
	cudaStream_t stream;

	OK(cudaStreamCreate(&stream));
	printf("\"capture\": [");
	for (int i = 0; i < 3; i++) {
		CUstreamCaptureStatus status;
		cudaGraph_t graph = NULL;
		size_t free_bytes, total;
		CUdevice device;
		int asked, info, current;

		OK(cudaStreamBeginCapture(stream, modes[i]));
		asked = cuStreamIsCapturing(stream, &status);
		current = cuCtxGetDevice(&device);
		info = cuMemGetInfo(&free_bytes, &total);
		printf("%s{\"cuStreamIsCapturing\": %d, \"cuCtxGetDevice\": %d, \"cuMemGetInfo\": %d, \"end\": %d}", i ? ", " : "",
		       asked, current, info, cudaStreamEndCapture(stream, &graph));
	}
	printf("]");
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int version = 0;

	if (!driver)
		return 77;
	printf("{");
	OK(cudaDriverGetVersion(&version));
	printf("\"driver\": %d, ", version);
	identity(driver);
	nesting();
	OK(cudaFree(NULL));
	costs();
	capture();
	puts("}");
	return 0;
}
