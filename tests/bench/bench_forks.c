/* SPDX-License-Identifier: MIT */
/* bench_forks THREADS FORKS: each thread forks that often, after a call of the GPU.  Prints microseconds per fork, and the longest. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64

int cudaMalloc(void **p, size_t bytes);

static long forks;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *longest)
{
	for (long i = 0; i < forks; i++) {
		uint64_t begin = now_ns(), took;
		pid_t child = fork();

		if (!child)
			_exit(0);
		took = now_ns() - begin;
		if (took > *(uint64_t *)longest)
			*(uint64_t *)longest = took;
		waitpid(child, NULL, 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 && atoi(argv[1]) < THREADS_MAX ? atoi(argv[1]) : 1;
	uint64_t longest[THREADS_MAX] = {0}, begin, took;
	pthread_t ids[THREADS_MAX];
	void *p;

	forks = argc > 2 ? atol(argv[2]) : 200;
	cudaMalloc(&p, 512);
	usleep(100000); /* until the writer sleeps */
	begin = now_ns();
	for (int t = 0; t < threads; t++)
		pthread_create(&ids[t], NULL, work, &longest[t]);
	for (int t = 0; t < threads; t++)
		pthread_join(ids[t], NULL);
	took = now_ns() - begin;
	for (int t = 1; t < threads; t++)
		longest[0] = longest[t] > longest[0] ? longest[t] : longest[0];
	printf("%.1f %.1f\n", (double)took / 1e3 / (double)(threads * forks), (double)longest[0] / 1e3);
	return 0;
}
