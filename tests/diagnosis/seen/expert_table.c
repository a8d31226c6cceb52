/* SPDX-License-Identifier: MIT */
/* An expert's weights are loaded when a token first needs them. Of 120, a dozen were never asked for when the program ends. */
#include "../../apps/gpu.h"

enum { EXPERTS = 120 };
static void *weights[EXPERTS];

static void *load(int expert)
{
	if (!weights[expert])
		OK(cudaMalloc(&weights[expert], 3 * MB));
	return weights[expert];
}

int main(void)
{
	void *activation;
	srand(5);
	for (int token = 0; token < 270; token++) {
		CHECK(load(rand() % EXPERTS));
		OK(cudaMalloc(&activation, 700000));
		OK(cudaFree(activation));
	}
	return 0;
}
