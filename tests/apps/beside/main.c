/* SPDX-License-Identifier: MIT */
/* For tests with other interposers: calls functions that are linked, found by dlsym, and found by cuGetProcAddress.  Prints results. */
#include "../gpu.h"

#include <dlfcn.h>
#include <sys/mman.h>

static void say(const char *what, int result)
{
	printf("%s %d\n", what, result);
}

int main(void)
{
	void *p[3], *driver, *place;
	address q[3] = {0};
	int (*allocate)(address *, size_t), (*release)(address), (*find)(const char *, void **, int, uint64_t, int *);
	int status = 0;
	void *found = NULL;

	for (int i = 0; i < 3; i++)
		say("cudaMalloc", cudaMalloc(&p[i], (i + 1) * MB));
	say("cudaFree", cudaFree(p[0]));
	say("cudaFree", cudaFree(p[1]));
	CHECK((driver = dlopen("libcuda.so.1", RTLD_NOW)));
	CHECK((allocate = dlsym(driver, "cuMemAlloc_v2")) && (release = dlsym(driver, "cuMemFree_v2")));
	say("cuMemAlloc", allocate(&q[0], 4 * MB));
	say("cuMemAlloc", allocate(&q[1], 5 * MB));
	say("cuMemFree", release(q[0]));
	CHECK((find = dlsym(driver, "cuGetProcAddress_v2")));
	say("cuGetProcAddress", find("cuMemAlloc", &found, 12000, 0, &status));
	allocate = found;
	say("cuMemAlloc", allocate(&q[2], 6 * MB));
	place = mmap(NULL, MB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("munmap", munmap(place, MB));
	return 0;
}
