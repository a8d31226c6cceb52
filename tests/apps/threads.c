/* SPDX-License-Identifier: MIT */
/* threads [THREADS [ROUNDS]]: each thread frees what its neighbour allocated, so one address is used by many threads. */
#include "gpu.h"

#include <pthread.h>

enum { SLOTS = 64 };
static void *slots[64][SLOTS];
static int threads = 8, rounds = 2000;

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg, next = (me + 1) % threads;
	unsigned seed = me * 7919 + 1;
	for (int i = 0; i < rounds; i++) {
		void *p = NULL;
		OK(cudaMalloc(&p, 512 + rand_r(&seed) % (64 << 10)));
		p = __atomic_exchange_n(&slots[me][i % SLOTS], p, __ATOMIC_ACQ_REL);
		if (p)
			OK(cudaFree(p));
		p = __atomic_exchange_n(&slots[next][(i * 7) % SLOTS], NULL, __ATOMIC_ACQ_REL);
		if (p)
			OK(cudaFree(p));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	if (argc > 1)
		threads = atoi(argv[1]);
	if (argc > 2)
		rounds = atoi(argv[2]);
	CHECK(threads > 0 && threads <= 64);
	for (int i = 0; i < threads; i++)
		CHECK(!pthread_create(&t[i], NULL, work, (void *)(intptr_t)i));
	for (int i = 0; i < threads; i++)
		CHECK(!pthread_join(t[i], NULL));
	return 0; /* what is left in the slots stays */
}
