/* SPDX-License-Identifier: MIT */
/* A renderer gives itself a pool of limited size, and outgrows it as the scene gets more lights; the device is nearly empty. */
#include "../../apps/gpu.h"

enum { FRAMES = 60, LIGHTS = 24 };

static void *arena;

static void *shadow_map(size_t bytes)
{
	void *p = NULL;

	if (cudaMallocFromPoolAsync(&p, bytes, arena, NULL))
		exit(3);
	return p;
}

static void frame(int lights)
{
	void *maps[LIGHTS];

	for (int i = 0; i < lights; i++)
		maps[i] = shadow_map(9 * MB); /* CULPRIT */
	for (int i = 0; i < lights; i++)
		OK(cudaFreeAsync(maps[i], NULL));
	OK(cudaDeviceSynchronize());
}

int main(void)
{
	struct pool_props props = {.alloc_type = 1, .location = {1, 0}, .max_size = 160 * MB};

	OK(cudaMemPoolCreate(&arena, &props)); /* CULPRIT */
	for (int n = 0; n < FRAMES; n++)
		frame(8 + n * (LIGHTS - 8) / FRAMES);
	return 0;
}
