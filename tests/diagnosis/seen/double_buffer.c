/* SPDX-License-Identifier: MIT */
/* Two buffers in turn, made anew for each picture since pictures differ; the one before is freed when the next is there. */
#include "../../apps/gpu.h"

static void *image_new(size_t pixels)
{
	void *p;
	OK(cudaMalloc(&p, pixels * 4));
	return p;
}

int main(void)
{
	void *now = NULL, *next;
	srand(8);
	for (int i = 0; i < 900; i++) {
		next = image_new(500000 + rand() % 900000);
		if (now)
			OK(cudaFree(now));
		now = next;
	}
	OK(cudaFree(now));
	return 0;
}
