/* SPDX-License-Identifier: MIT */
/*
 * Calls every function of agent/include/stormlog.h, around calls of a CUDA runtime if one can be opened.  With a number as argument
 * it makes so many ranges and prints the nanoseconds of each.  C99 and C++.
 */
#define _POSIX_C_SOURCE 200809L
#include "stormlog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef SAYS_STATIC
#include <dlfcn.h>
typedef int (*malloc_function)(void **block, size_t bytes);
typedef int (*free_function)(void *block);
static malloc_function gpu_malloc;
static free_function gpu_free;

static void *make(size_t bytes)
{
	void *block = NULL;

	return gpu_malloc && !gpu_malloc(&block, bytes) ? block : NULL;
}

static void drop(void *block)
{
	if (gpu_free)
		gpu_free(block);
}

static void find_gpu(void)
{
	void *library = dlopen("libcudart.so.13", RTLD_NOW);

	if (!library)
		return;
	*(void **)&gpu_malloc = dlsym(library, "cudaMalloc"); /* the cast that POSIX recommends */
	*(void **)&gpu_free = dlsym(library, "cudaFree");
}
#else
static void find_gpu(void)
{
}

static void *make(size_t bytes)
{
	(void)bytes;
	return NULL;
}

static void drop(void *block)
{
	(void)block;
}
#endif

static void say(void)
{
	char path[4096];
	void *cache, *weights;

	stormlog_metadata("early", "said before the first call");
	stormlog_push_step("step", 7);
	drop(make(1 << 9)); /* starts the recorder's thread, which loads the stack unwinder */
	stormlog_flush(60000);
	cache = make(3 << 20);
	stormlog_metadata("model", "resnet50");
	stormlog_pair("batch_size", "128");
	stormlog_name(cache, 0, "KV cache");
	stormlog_block(NULL, 0, "nothing"); /* is ignored */
	stormlog_block_gone(NULL);
	stormlog_push("layer 3");
	weights = make(1 << 20);
	stormlog_name(weights, 1 << 19, "optimizer state");
	stormlog_pop();
	stormlog_mark("checkpoint saved");
	stormlog_record(0);
	drop(make(1 << 10));
	stormlog_record(1);
	drop(weights);
	stormlog_pop();
	stormlog_pop(); /* one pop too many is ignored */
#ifdef __cplusplus
	{
		stormlog_range range("scope", 2);
	}
#endif
	printf("%d %d %zu\n", stormlog_agent() != NULL, stormlog_flush(60000), stormlog_trace(path, sizeof(path)));
	if (stormlog_trace(path, sizeof(path)))
		puts(path);
	drop(cache);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Nanoseconds to push and pop a range, the best of some rounds. */
static double range_ns(long count)
{
	double best = 1e18;
	int round;
	long i;

	for (round = 0; round < 20; round++) {
		double begin = now(), took;

		for (i = 0; i < count; i++) {
			stormlog_push_step("step", (uint64_t)i);
			stormlog_pop();
		}
		took = (now() - begin) / (double)count;
		best = took < best ? took : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	find_gpu();
	if (argc < 2) {
		say();
		return 0;
	}
	drop(make(1 << 20));
	printf("%.1f\n", range_ns(atol(argv[1])));
	return 0;
}
