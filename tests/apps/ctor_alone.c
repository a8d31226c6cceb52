/* SPDX-License-Identifier: MIT */
/*
 * A library to preload, whose constructor makes the program's first GPU call: one allocation that stays.
 *	CTOR_THREAD	another thread exists by then
 */
#include "gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *stay(void *unused)
{
	pause();
	return unused;
}

__attribute__((constructor)) static void construct(void)
{
	static void *kept;
	pthread_t thread;

	CHECK(!getenv("CTOR_THREAD") || !pthread_create(&thread, NULL, stay, NULL));
	OK(cudaMalloc(&kept, 4096));
}
