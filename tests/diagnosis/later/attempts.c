/* SPDX-License-Identifier: MIT */
/* Tries again when a plan fails to fit; what the failed attempt had taken is not given back, so the next fits even less. */
#include "../../apps/gpu.h"

enum { LAYERS = 12 };

struct plan {
	void *layer[LAYERS];
	int have;
};

static int reserve(void **p, size_t bytes)
{
	int error = cudaMalloc(p, bytes);
	if (error)
		cudaGetLastError();
	return error;
}

static int plan_make(struct plan *plan, size_t batch)
{
	plan->have = 0;
	for (int i = 0; i < LAYERS; i++, plan->have++)
		if (reserve(&plan->layer[i], batch * (4 * MB) + (size_t)i * 4096)) /* CULPRIT */
			return OUT_OF_MEMORY;
	return 0;
}

static void plan_drop(struct plan *plan)
{
	while (plan->have)
		OK(cudaFree(plan->layer[--plan->have]));
}

static int run(size_t batch)
{
	struct plan plan;
	for (; batch; batch -= batch > 4 ? batch / 4 : 1) {
		int error = plan_make(&plan, batch); /* CULPRIT */
		if (!error) {
			plan_drop(&plan);
			return 0;
		}
		fprintf(stderr, "batch %zu does not fit, trying less\n", batch);
	}
	return OUT_OF_MEMORY;
}

int main(void)
{
	for (size_t batch = 8; batch <= 64; batch *= 2)
		if (run(batch))
			return 0;
	return run(200) ? 5 : 0;
}
