/* SPDX-License-Identifier: MIT */
/* weak: looks for CUDA as configure scripts and tools do, and calls nothing.  Exits 0 where CUDA is absent, 10 where it is there. */
#include "gpu.h"

#include <dlfcn.h>

#pragma weak cudaMalloc
#pragma weak cuMemAlloc_v2
#pragma weak hipMalloc

int main(void)
{
	printf("weak cudaMalloc %s\n", (void *)cudaMalloc ? "present" : "absent");
	printf("weak cuMemAlloc_v2 %s\n", (void *)cuMemAlloc_v2 ? "present" : "absent");
	printf("weak hipMalloc %s\n", (void *)hipMalloc ? "present" : "absent");
	int found = 0;
	static const char *const names[] = {"cudaMalloc", "cuMemAlloc_v2", "hipMalloc", "cuGetProcAddress_v2"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		void *p = dlsym(RTLD_DEFAULT, names[i]), *next = dlsym(RTLD_NEXT, names[i]);
		printf("dlsym %s %s %s\n", names[i], p ? "present" : "absent", next ? "present" : "absent");
		found += p || next;
	}
	return found ? 10 : 0;
}
