/* SPDX-License-Identifier: MIT */
/* HIP. Each convolution tries three algorithms, each with its workspace; the workspace of the best is kept even if the layer had one. */
#include "../../apps/gpu.h"

#define HIP_CHECK(call) OK(call)
struct layer {
	int channels;
	void *weights, *workspace;
};

static void *hip_alloc(size_t bytes)
{
	void *p;
	HIP_CHECK(hipMalloc(&p, bytes));
	return p;
}

static void find_best(struct layer *layer, int height)
{
	void *best = NULL;
	for (int algorithm = 0; algorithm < 3; algorithm++) {
		void *workspace = hip_alloc((size_t)layer->channels * height * 64 * (algorithm + 1)); /* CULPRIT: asked here */
		if (algorithm == height % 3)
			best = workspace;
		else
			HIP_CHECK(hipFree(workspace));
	}
	layer->workspace = best; /* CULPRIT: overwritten here */
}

int main(void)
{
	struct layer layers[6];
	for (int i = 0; i < 6; i++)
		layers[i] = (struct layer){32 << i / 2, hip_alloc((8ull << 20) >> i), NULL};
	for (int image = 0; image < 30; image++) {
		int height = 64 + image * 7 % 50;
		for (int i = 0; i < 6; i++) {
			void *output = hip_alloc((size_t)layers[i].channels * height * height);
			find_best(&layers[i], height);
			HIP_CHECK(hipFree(output));
		}
	}
	return 0;
}
