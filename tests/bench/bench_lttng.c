/* SPDX-License-Identifier: MIT */
/* bench_lttng THREADS CALLS: CPU in nanoseconds of a tracepoint with an address and a size, best of five rounds. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench_lttng.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned long calls;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *best)
{
	*(uint64_t *)best = UINT64_MAX;
	for (int round = 0; round < 5; round++) {
		uint64_t begin = cpu_ns(), took;

		for (unsigned long i = 0; i < calls; i++)
			lttng_ust_tracepoint(bench, call, (void *)(0x7f0000000000 + (i % 4096 << 9)), 512 + (i & 15) * 512);
		took = cpu_ns() - begin;
		*(uint64_t *)best = took < *(uint64_t *)best ? took : *(uint64_t *)best;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t ids[64];
	uint64_t best[64], sum = 0;

	calls = argc > 2 ? strtoul(argv[2], NULL, 0) : 1000000;
	for (int t = 0; t < threads; t++)
		pthread_create(&ids[t], NULL, work, &best[t]);
	for (int t = 0; t < threads; t++) {
		pthread_join(ids[t], NULL);
		sum += best[t];
	}
	printf("%.1f\n", (double)sum / threads / (double)calls);
	return 0;
}
