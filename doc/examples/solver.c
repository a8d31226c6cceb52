/* SPDX-License-Identifier: MIT */
/*
 * A solver in C: grids for the whole run, work areas for each sweep from the device's pool, pinned buffers for output.
 * One restart file too many is read at the end: the first try finds no room, the second, after the work areas
 * were given back, does.
 */
#include <unistd.h>

#include "cuda.h"

#define MIB    (1ull << 20)
#define GRIDS  6
#define SWEEPS 80

static struct cuda cuda;
static void *grids[GRIDS], *history[SWEEPS];

static void check(int code, const char *what)
{
	if (!code)
		return;
	fprintf(stderr, "solver: %s: %s\n", what, cuda.error(code));
	exit(1);
}

static __attribute__((noinline)) void make_grids(void)
{
	for (unsigned i = 0; i < GRIDS; i++)
		check(cuda.malloc(&grids[i], (160 + 32 * i) * MIB), "grid");
}

static __attribute__((noinline)) void sweep(unsigned number)
{
	void *halo, *residual;

	check(cuda.malloc_async(&halo, (24 + number % 5 * 8) * MIB, NULL), "halo");
	check(cuda.malloc_async(&residual, 64 * MIB, NULL), "residual");
	check(cuda.free_async(residual, NULL), "residual");
	check(cuda.free_async(halo, NULL), "halo");
	usleep(5000);
}

/* Grows for ever: the analysis wanted the last one only. */
static __attribute__((noinline)) void remember_state(unsigned number)
{
	check(cuda.malloc(&history[number], 3 * MIB), "history");
}

static __attribute__((noinline)) void write_output(void)
{
	void *buffer;

	check(cuda.malloc_host(&buffer, 32 * MIB), "output buffer");
	check(cuda.free_host(buffer), "output buffer");
}

/* All that is free and what the oldest grid takes: there is room only once that is gone. */
static __attribute__((noinline)) void read_restart(void)
{
	size_t left, total;
	void *state;

	check(cuda.synchronize(), "synchronize");
	check(cuda.memory(&left, &total), "memory");
	left += 64 * MIB;
	if (cuda.malloc(&state, left)) {
		fprintf(stderr, "solver: no room for the restart file, giving a grid back\n");
		check(cuda.free(grids[0]), "grid");
		grids[0] = NULL;
		check(cuda.malloc(&state, left), "restart file");
	}
	check(cuda.free(state), "restart file");
}

int main(void)
{
	cuda = cuda_load();
	make_grids();
	for (unsigned i = 0; i < SWEEPS; i++) {
		sweep(i);
		remember_state(i);
		if (i % 20 == 0)
			write_output();
	}
	read_restart();
	for (unsigned i = 0; i < GRIDS; i++)
		check(cuda.free(grids[i]), "grid");
	printf("solver: %d sweeps\n", SWEEPS);
	return 0;
}
