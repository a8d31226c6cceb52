/* SPDX-License-Identifier: MIT */
/* Would it fit a smaller card? A solver whose multigrid levels take what the finest grid takes, and a third. */
#include "../../apps/gpu.h"

struct level {
	void *solution, *rhs, *residual;
};

static void *grid(size_t cells)
{
	void *p;
	if (cudaMalloc(&p, cells * sizeof(double))) {
		fprintf(stderr, "grid of %zu cells does not fit\n", cells);
		exit(1);
	}
	return p;
}

static void level_init(struct level *level, size_t n)
{
	level->solution = grid(n * n);
	level->rhs = grid(n * n);
	level->residual = grid(n * n); /* CULPRIT */
}

int main(void)
{
	struct level levels[8];
	for (int i = 0; i < 8; i++)
		level_init(&levels[7 - i], 96u << i);
	for (int i = 0; i < 200; i++)
		OK(cudaFree(grid(50000)));
	return 0;
}
