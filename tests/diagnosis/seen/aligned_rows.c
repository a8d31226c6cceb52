/* SPDX-License-Identifier: MIT */
/* Rows are aligned by hand: the pointer that is handed out, and freed, lies behind the one that cudaMalloc gave. The error is not looked at. */
#include "../../apps/gpu.h"

enum { ALIGN = 1024 };

static void *aligned(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes + ALIGN));
	return (char *)p + ALIGN;
}

static void aligned_free(void *p)
{
	cudaFree(p); /* CULPRIT: of another address than was given */
}

static void filter(int rows)
{
	void *image = aligned((size_t)rows * 2048); /* CULPRIT: asked here */
	aligned_free(image);
}

int main(void)
{
	void *kernel;
	OK(cudaMalloc(&kernel, 3 * MB));
	for (int i = 0; i < 120; i++)
		filter(200 + i * 13 % 97);
	OK(cudaFree(kernel));
	return 0;
}
