/* SPDX-License-Identifier: MIT */
/*
 * Built with each sanitizer by test_sanitizers.py.  Threads call at the same time and end; there is a range, a forked child that
 * calls, and calls from many places.  The program has no defects, so a sanitizer reports nothing of it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

#ifdef OWN_OPTIONS
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=1";
}
#endif

enum { THREADS = 8, CALLS = 500 };

static int allocate(int depth)
{
	void *pointer;
	int result;

	if (depth)
		return allocate(depth - 1) + 0 * depth;
	result = cudaMalloc(&pointer, 4096);
	return result ? result : cudaFree(pointer);
}

static void *work(void *unused)
{
	char *used = malloc(100);
	long failed = 0;

	memset(used, 'x', 100);
	for (int i = 0; i < CALLS; i++)
		failed += allocate(i % 20);
	free(used);
	return failed ? unused : NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	int status = 0;
	pid_t child;

	if (allocate(0))
		return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, thread);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		if (failed)
			return 3;
	}
	child = fork();
	if (!child)
		_exit(allocate(3) ? 4 : 5);
	waitpid(child, &status, 0);
	usleep(200000);
	printf("done, the child's status is %d\n", WEXITSTATUS(status));
	return 0;
}
