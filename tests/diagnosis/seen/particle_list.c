/* SPDX-License-Identifier: MIT */
/* Particles in managed cells. A cell that runs empty is unlinked from the list; the one at the head is freed, any other is only skipped. */
#include "../../apps/gpu.h"

struct cell {
	struct cell *next;
	int particles;
};
static struct cell *cells;

static void *managed(size_t bytes)
{
	void *p;
	OK(cudaMallocManaged(&p, bytes, 1));
	return p;
}

static void insert(int particles)
{
	struct cell *cell = managed(64 << 10); /* CULPRIT: asked here */
	cell->particles = particles;
	cell->next = cells;
	cells = cell;
}

static void drop_empty(void)
{
	while (cells && !cells->particles) {
		struct cell *first = cells;
		cells = first->next;
		OK(cudaFree(first));
	}
	for (struct cell *at = cells; at && at->next;)
		if (!at->next->particles)
			at->next = at->next->next; /* CULPRIT: lost here */
		else
			at = at->next;
}

int main(void)
{
	srand(23);
	for (int step = 0; step < 60; step++) {
		for (int i = 0; i < 6; i++)
			insert(1 + rand() % 5);
		for (struct cell *at = cells; at; at = at->next)
			at->particles -= at->particles > 0;
		drop_empty();
	}
	while (cells) {
		struct cell *first = cells;
		cells = first->next;
		OK(cudaFree(first));
	}
	return 0;
}
