/* SPDX-License-Identifier: MIT */
/*
 * ctor_host PLUGIN.so locked|first.  locked: a thread allocates under a lock that the constructor of a library waits for, while the
 * constructor runs under the loader's lock: an agent that takes the loader's lock inside an allocation hangs.  first: the constructor makes the first GPU calls of the process, two threads at once.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
volatile int host_constructing;
static int locked;

void host_allocate(void);

void host_allocate(void)
{
	static __thread int current;
	void *context;
	address p;
	if (!current) {
		OK(cuDevicePrimaryCtxRetain(&context, 0));
		OK(cuCtxSetCurrent(context));
		current = 1;
	}
	OK(cuMemAlloc_v2(&p, MB));
	OK(cuMemFree_v2(p));
}

static void *allocate_under_the_lock(void *unused)
{
	CHECK(!pthread_mutex_lock(&host_lock));
	locked = 1;
	while (!host_constructing)
		usleep(1000);
	usleep(50000); /* by now the constructor waits for the lock */
	host_allocate();
	CHECK(!pthread_mutex_unlock(&host_lock));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *library;
	alarm(300);
	CHECK(argc == 3);
	OK(cuInit(0));
	if (!strcmp(argv[2], "locked")) {
		CHECK(!pthread_create(&thread, NULL, allocate_under_the_lock, NULL));
		while (!*(volatile int *)&locked)
			usleep(1000);
	}
	library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	if (locked)
		CHECK(!pthread_join(thread, NULL));
	host_allocate();
	CHECK(!dlclose(library));
	return 0;
}
