/* SPDX-License-Identifier: MIT */
/* Adaptive meshes: patches are refined where it matters, and never coarsened again. */
#include "../../apps/gpu.h"

#define PATCHES 20000

struct patch {
	double *cells;
	int level;
};

static struct patch patches[PATCHES];
static int patch_count;

static void *grab(size_t bytes, const char *who)
{
	void *p;
	int rc = cudaMalloc(&p, bytes);
	if (rc) {
		fprintf(stderr, "%s: no memory after %d patches\n", who, patch_count);
		exit(12);
	}
	return p;
}

static void add_patch(int level)
{
	CHECK(patch_count < PATCHES);
	patches[patch_count].cells = grab(600 * 600 * sizeof(double), "patch"); /* CULPRIT */
	patches[patch_count++].level = level;
}

static void refine(int step)
{
	for (int i = 0; i < 5; i++)
		add_patch(step % 6);
}

static void advance(void)
{
	void *flux = grab(3 * MB, "flux");
	cudaFree(flux);
}

int main(void)
{
	for (int step = 0; step < 4000; step++) {
		advance();
		refine(step);
	}
	return 0;
}
