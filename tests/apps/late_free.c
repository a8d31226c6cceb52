/* SPDX-License-Identifier: MIT */
/*
 * A library that frees its blocks when it is unloaded, after the agent's own end, on a thread with a stack of given size.
 * Data of the program are below that stack's guard page: a frame large enough to skip the page would write there.
 */
#include "late_free.h"

#include "gpu.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 100, DATA = 64 << 10, GUARD = 4096, FILL = 0xa5 };

static void *kept[BLOCKS];
static size_t stack_bytes;

void late_free(size_t stack)
{
	stack_bytes = stack;
	for (int i = 0; i < BLOCKS; i++)
		OK(cudaMalloc(&kept[i], 4096));
}

static void *free_all(void *unused)
{
	for (int i = 0; i < BLOCKS; i++)
		OK(cudaFree(kept[i]));
	return unused;
}

__attribute__((destructor)) static void unload(void)
{
	unsigned char *map;
	pthread_attr_t attr;
	pthread_t thread;
	int changed = 0;

	if (!stack_bytes)
		return;
	map = mmap(NULL, DATA + GUARD + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED);
	memset(map, FILL, DATA);
	CHECK(!mprotect(map + DATA, GUARD, PROT_NONE));
	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setstack(&attr, map + DATA + GUARD, stack_bytes));
	CHECK(!pthread_create(&thread, &attr, free_all, NULL) && !pthread_join(thread, NULL));
	for (int i = 0; i < DATA; i++)
		changed += map[i] != FILL;
	if (changed)
		_exit(9);
}
