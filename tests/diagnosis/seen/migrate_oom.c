/* SPDX-License-Identifier: MIT */
/* Particles migrate between cells. A cell that gets fuller gets a new list, and the old one is forgotten. */
#include "../../apps/gpu.h"

struct cell {
	void *list;
	size_t room, count;
};

static int reserve(void **p, size_t bytes)
{
	return cudaMalloc(p, bytes) == 0;
}

static void grow(struct cell *cell, size_t count)
{
	if (count <= cell->room)
		return;
	cell->room = count + 2000;
	if (!reserve(&cell->list, cell->room * 48)) { /* CULPRIT */
		fprintf(stderr, "no room for %zu particles\n", cell->room);
		exit(4);
	}
}

static void sort_step(void)
{
	void *keys, *values;

	if (!reserve(&keys, 8 * MB) || !reserve(&values, 8 * MB))
		exit(4);
	cudaFree(values);
	cudaFree(keys);
}

int main(void)
{
	static struct cell cells[64];
	unsigned seed = 9;

	for (int step = 0; step < 4000; step++) {
		struct cell *cell = &cells[(seed = seed * 1103515245 + 12345) / 65536 % 64];

		cell->count += 2100;
		grow(cell, cell->count);
		sort_step();
	}
	return 0;
}
