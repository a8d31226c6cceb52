/* SPDX-License-Identifier: MIT */
/* kill_me [THREADS]: allocates and frees until it is killed; says "ready" when it has begun. */
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

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t;
	OK(cudaFree(NULL));
	CHECK(write(1, "ready\n", 6) == 6);
	for (int i = 1; i < threads; i++)
		CHECK(!pthread_create(&t, NULL, work, (void *)(intptr_t)i));
	work(NULL);
	return 0;
}
