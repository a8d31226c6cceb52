/* SPDX-License-Identifier: MIT */
/*
 * little BYTES CALLS: a thread makes so many calls with all its stack, and then one with so many bytes of it left above a page that
 * nothing may touch.
 */
#include "gpu.h"

#include <alloca.h>
#include <pthread.h>
#include <sys/mman.h>

enum { STACK = 256 << 10, GUARD = 8192 };

static size_t left;
static int calls;
static char *low;

__attribute__((noinline)) static int allocate(void)
{
	void *block;
	int error = cudaMalloc(&block, 4096);

	__asm__ volatile("" : "+r"(error)); /* not a tail call */
	return error;
}

__attribute__((noinline)) static int allocate_below(void)
{
	volatile char *room = alloca((size_t)((char *)__builtin_frame_address(0) - low) - left);

	room[0] = 0;
	return allocate() + room[0];
}

static void *work(void *unused)
{
	for (int i = 0; i < calls; i++)
		OK(allocate());
	OK(allocate_below());
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t how;
	pthread_t thread;
	void *block;

	left = (size_t)atol(argv[1]);
	calls = atoi(argv[2]);
	OK(cudaMalloc(&block, 512));
	low = mmap(NULL, GUARD + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(low != MAP_FAILED);
	low += GUARD;
	CHECK(!mprotect(low, STACK, PROT_READ | PROT_WRITE));
	CHECK(!pthread_attr_init(&how) && !pthread_attr_setstack(&how, low, STACK));
	CHECK(!pthread_create(&thread, &how, work, NULL) && !pthread_join(thread, NULL));
	return 0;
}
