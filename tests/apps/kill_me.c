/* SPDX-License-Identifier: MIT */
/*
 * kill_me [THREADS [HOW [MICROSECONDS]]]: allocates and frees until it is killed, or ends itself after so long, by HOW:
 * segv, abort, _exit, quick_exit; says "ready" when it has begun.
 */
#include "gpu.h"

#include <pthread.h>
#include <unistd.h>

static void *work(void *arg)
{
	void *held[32] = {0};
	for (unsigned i = 0, seed = (intptr_t)arg + 1;; i++) {
		void **slot = &held[rand_r(&seed) % 32];
		if (*slot)
			OK(cudaFree(*slot));
		OK(cudaMalloc(slot, 512 + rand_r(&seed) % (256 << 10)));
	}
	return NULL;
}

static const char *how = "";
static useconds_t after;

static void *end(void *arg)
{
	usleep(after);
	if (!strcmp(how, "segv"))
		*(volatile int *)0 = 1;
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "_exit"))
		_exit(0);
	else if (!strcmp(how, "quick_exit"))
		quick_exit(0);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t;
	OK(cudaFree(NULL));
	CHECK(write(1, "ready\n", 6) == 6);
	if (argc > 3) {
		how = argv[2];
		after = (useconds_t)atoi(argv[3]);
		CHECK(!pthread_create(&t, NULL, end, NULL));
	}
	for (int i = 1; i < threads; i++)
		CHECK(!pthread_create(&t, NULL, work, (void *)(intptr_t)i));
	work(NULL);
	return 0;
}
