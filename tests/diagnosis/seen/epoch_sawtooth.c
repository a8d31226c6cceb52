/* SPDX-License-Identifier: MIT */
/* An epoch collects its gradients and gives them all back at its end. */
#include "../../apps/gpu.h"

enum { EPOCHS = 11, STEPS = 60 };

static void *take(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

static void epoch(void)
{
	void *collected[STEPS];
	for (int i = 0; i < STEPS; i++) {
		void *batch = take(5 * MB);
		collected[i] = take(700 * 1024);
		OK(cudaFree(batch));
	}
	for (int i = 0; i < STEPS; i++)
		OK(cudaFree(collected[i]));
}

int main(void)
{
	void *model = take(180 * MB);
	for (int i = 0; i < EPOCHS; i++)
		epoch();
	OK(cudaFree(model));
	return 0;
}
