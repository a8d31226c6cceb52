/* SPDX-License-Identifier: MIT */
/* A program that opens the driver, closes it as programs do that look for GPUs, and opens it again at another address. */
#include "gpu.h"

#include <dlfcn.h>
#include <sys/mman.h>

enum { TURNS = 3 };

static void *use(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
	CHECK(library);
	int (*init)(unsigned) = dlsym(library, "cuInit"), (*retain)(void **, int) = dlsym(library, "cuDevicePrimaryCtxRetain");
	int (*release)(int) = dlsym(library, "cuDevicePrimaryCtxRelease_v2"), (*set)(void *) = dlsym(library, "cuCtxSetCurrent");
	int (*alloc)(address *, size_t) = dlsym(library, "cuMemAlloc_v2"), (*drop)(address) = dlsym(library, "cuMemFree_v2");
	address block;
	Dl_info where;

	OK(init(0));
	OK(retain(&context, 0));
	OK(set(context));
	OK(alloc(&block, MB));
	OK(drop(block));
	OK(set(NULL));
	OK(release(0));
	CHECK(dladdr(dlsym(library, "cuGetErrorName"), &where)); /* a function that is not hooked, so its address is the driver's */
	CHECK(!dlclose(library));
	CHECK(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
	return where.dli_fbase;
}

int main(void)
{
	for (int turn = 0; turn < TURNS; turn++) {
		void *was = use();
		CHECK(mmap(was, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == was); /* not there again */
	}
	return 0;
}
