/* SPDX-License-Identifier: MIT */
/* Fills a basin bucket by bucket, empties it, and only watches it for the rest of its time. */
#include <unistd.h>

#include "../../apps/gpu.h"

enum { BUCKETS = 240 };

static void *bucket(void)
{
	void *p;
	OK(cudaMalloc(&p, 768 * 1024));
	return p;
}

static void watch(int times)
{
	for (int i = 0; i < times; i++)
		usleep(10000);
}

int main(void)
{
	void *basin[BUCKETS], *picture;

	for (int i = 0; i < BUCKETS; i++) {
		basin[i] = bucket();
		usleep(2500);
	}
	for (int i = 0; i < BUCKETS; i++)
		OK(cudaFree(basin[i]));
	watch(50);
	OK(cudaMalloc(&picture, 40 * MB));
	OK(cudaFree(picture));
	return 0;
}
