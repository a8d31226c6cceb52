/* SPDX-License-Identifier: MIT */
/* Messages of random length in a free list of at most thirty, as traffic comes and goes. */
#include "../../apps/gpu.h"

static void *held[30];

static void *acquire(size_t n)
{
	void *p = NULL;
	int rc = cudaMalloc(&p, n);
	if (rc)
		exit(rc);
	return p;
}

int main(void)
{
	srand(41);
	for (int i = 0; i < 4000; i++) {
		int slot = rand() % 30;
		if (held[slot]) {
			cudaFree(held[slot]);
			held[slot] = NULL;
		} else {
			held[slot] = acquire(512u << rand() % 12);
		}
	}
	for (int i = 0; i < 30; i++)
		if (held[i])
			cudaFree(held[i]);
	return 0;
}
