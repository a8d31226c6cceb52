/* SPDX-License-Identifier: MIT */
/*
 * bench_calls THREADS CALLS [malloc|sync|launch]: pairs of cudaMalloc and cudaFree (or malloc and free, waits, launches), 16 frames deep.  Prints CPU in
 * nanoseconds per call of the calling threads (best of five rounds), of all other threads (the writer), and resident KiB.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5
#define DEPTH  12

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
int cuStreamSynchronize(void *stream);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
		   void *stream, void **params, void **extra);

static unsigned long calls;
static int use_malloc, use_sync, use_launch;

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static __attribute__((noinline)) void pairs(unsigned depth)
{
	if (depth) {
		pairs(depth - 1);
		__asm__ volatile(""); /* no tail call */
		return;
	}
	for (unsigned long i = 0; i < calls / 2; i++) {
		void *p;

		if (use_sync) {
			cuStreamSynchronize(&p);
			cuStreamSynchronize(&p);
		} else if (use_launch) {
			cuLaunchKernel(&p, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
			cuLaunchKernel(&p, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		} else if (use_malloc) {
			p = malloc(512 + (i & 15) * 512);
			__asm__ volatile("" : : "r"(p) : "memory");
			free(p);
		} else {
			cudaMalloc(&p, 512 + (i & 15) * 512);
			cudaFree(p);
		}
	}
}

static void *work(void *unused)
{
	static __thread double best = 1e18, sum;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
		double ns;

		pairs(DEPTH);
		ns = (double)(cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
		best = ns < best ? ns : best;
		sum += ns;
	}
	double *result = malloc(2 * sizeof(*result));

	result[0] = best;
	result[1] = sum;
	return result;
}

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t ids[64];
	double best = 0, sum = 0;
	uint64_t begin = cpu_ns(CLOCK_PROCESS_CPUTIME_ID), all;

	calls = argc > 2 ? strtoul(argv[2], NULL, 0) : 1000000;
	use_sync = argc > 3 && !strcmp(argv[3], "sync");
	use_launch = argc > 3 && !strcmp(argv[3], "launch");
	use_malloc = argc > 3 && !use_sync && !use_launch;
	if (getenv("BENCH_WAIT")) /* waits for a line, which says that the watcher has begun */
		getchar();
	for (int t = 0; t < threads; t++)
		pthread_create(&ids[t], NULL, work, NULL);
	for (int t = 0; t < threads; t++) {
		double *result;

		pthread_join(ids[t], (void **)&result);
		best += result[0];
		sum += result[1];
		free(result);
	}
	usleep(500000); /* until the writer has caught up */
	all = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
	printf("%.1f %.1f %ld\n", best / threads / (double)calls, ((double)all - sum) / threads / (double)calls / ROUNDS,
	       resident_kib());
	return 0;
}
