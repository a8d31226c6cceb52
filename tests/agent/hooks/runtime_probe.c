/* SPDX-License-Identifier: MIT */
/* Open a runtime by its path and make the first calls a program makes; their results are the output. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *runtime = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL), *block = NULL;
	int (*count)(int *) = runtime ? (int (*)(int *))dlsym(runtime, "cudaGetDeviceCount") : NULL;
	int (*allocate)(void **, size_t) = runtime ? (int (*)(void **, size_t))dlsym(runtime, "cudaMalloc") : NULL;
	const char *(*name)(int) = runtime ? (const char *(*)(int))dlsym(runtime, "cudaGetErrorName") : NULL;
	int devices = -1, result;

	if (!count || !allocate || !name) {
		puts(dlerror());
		return 1;
	}
	result = count(&devices);
	printf("cudaGetDeviceCount %d %s\n", result, name(result));
	result = allocate(&block, 4096);
	printf("cudaMalloc %d %s %d\n", result, name(result), block != NULL);
	return 0;
}
