/* SPDX-License-Identifier: MIT */
/* Eight ranks of a simulation. Every fourth gathers the output of the three after it, in a window that it keeps from the start. */
#include <unistd.h>

#include "../../apps/gpu.h"

struct output {
	int gathers;
	void *window;
};

static void *room(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

static void output_open(struct output *o, int rank)
{
	o->gathers = rank % 4 == 0;
	if (o->gathers)
		o->window = room(72 * MB);
}

static void output_write(struct output *o)
{
	void *packed;

	if (!o->gathers)
		return;
	packed = room(2 * MB);
	OK(cudaFree(packed));
}

int main(void)
{
	int rank = atoi(getenv("RANK"));
	struct output output = {0};

	OK(cudaSetDevice(rank));
	void *field = room(160 * MB);
	output_open(&output, rank);
	for (int step = 0; step < 200; step++) {
		void *flux = room((size_t)(4 + (step + rank) % 3) * MB);

		usleep(1500);
		OK(cudaFree(flux));
		if (step % 4 == 0)
			output_write(&output);
	}
	return cudaFree(field);
}
