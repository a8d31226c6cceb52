/* SPDX-License-Identifier: MIT */
/*
 * Another tool's interposer of cudaMalloc and open, preloaded before or after the agent: calls the next one by RTLD_NEXT and counts.  Its constructor looks names up and allocates, before the agent's own constructor may have run.
 */
#include <dlfcn.h>
#include <stdio.h>

static int calls, depth;

int cudaMalloc(void **block, size_t size)
{
	int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
	int result;

	if (!next || depth > 8)
		return 999;
	depth++;
	calls++;
	result = next(block, size);
	depth--;
	return result;
}

__attribute__((constructor)) static void early(void)
{
	printf("constructor: %s %s\n", dlsym(RTLD_NEXT, "open") ? "there" : "absent",
	       dlsym(RTLD_DEFAULT, "cuMemAllocManaged") ? "there" : "absent");
	dlerror();
}

__attribute__((destructor)) static void late(void)
{
	printf("interposer saw %d calls\n", calls);
}
