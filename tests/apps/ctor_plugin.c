/* SPDX-License-Identifier: MIT */
/* A library whose constructor allocates under a lock of its host, and by a thread at the same time. */
#include "gpu.h"

#include <pthread.h>

extern pthread_mutex_t host_lock;
extern volatile int host_constructing;
extern void host_allocate(void);

static void *work(void *unused)
{
	host_allocate();
	return NULL;
}

__attribute__((constructor)) static void construct(void)
{
	pthread_t thread;
	host_constructing = 1;
	CHECK(!pthread_mutex_lock(&host_lock));
	host_allocate();
	CHECK(!pthread_mutex_unlock(&host_lock));
	CHECK(!pthread_create(&thread, NULL, work, NULL)); /* the loader's lock is held until it has ended */
	host_allocate();
	CHECK(!pthread_join(thread, NULL));
}

__attribute__((destructor)) static void destruct(void)
{
	host_allocate();
}
