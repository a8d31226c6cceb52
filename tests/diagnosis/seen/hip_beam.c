/* SPDX-License-Identifier: MIT */
/* Beam search on HIP: a beam that ends early leaves its scores behind. */
#include "../../apps/gpu.h"
#include <unistd.h>

static void *hip_get(size_t bytes)
{
	void *p;

	OK(hipMalloc(&p, bytes));
	return p;
}

static int beam(int length)
{
	void *state = hip_get(700000), *scores = hip_get(294912); /* CULPRIT */

	OK(hipFree(state));
	if (length < 4)
		return 0; /* CULPRIT */
	OK(hipFree(scores));
	return length;
}

int main(void)
{
	unsigned seed = 5;

	for (int sentence = 0; sentence < 500; sentence++) {
		seed = seed * 1103515245 + 12345;
		beam((int)(seed >> 16) % 16);
		usleep(500);
	}
	return 0;
}
