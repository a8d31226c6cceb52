/* SPDX-License-Identifier: MIT */
/* A decoder captures its step again whenever the batch changes; the executable of the batch before is replaced, not destroyed. */
extern "C" {
#include "../../apps/gpu.h"
}

struct Decoder {
	void *stream = nullptr, *exec = nullptr;
	int batch = 0;

	void *instantiate(int rows)
	{
		struct alloc_node node = {};
		void *graph, *begin, *end, *made;
		node.pool.alloc_type = 1;
		node.pool.location = {1, 0};
		node.bytes = rows * MB / 16;
		OK(cuGraphCreate(&graph, 0));
		OK(cuGraphAddMemAllocNode(&begin, graph, nullptr, 0, &node));
		OK(cuGraphAddMemFreeNode(&end, graph, &begin, 1, node.ptr));
		OK(cuGraphInstantiateWithFlags(&made, graph, 0)); /* CULPRIT: asked here */
		OK(cuGraphDestroy(graph));
		return made;
	}
	void step(int rows)
	{
		if (rows != batch) {
			exec = instantiate(rows); /* CULPRIT: overwritten here */
			batch = rows;
		}
		OK(cuGraphLaunch(exec, stream));
	}
};

int main()
{
	void *context;
	address weights;
	Decoder decoder;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&weights, 200 * MB));
	OK(cuStreamCreate(&decoder.stream, 0));
	for (int token = 0; token < 6000; token++)
		decoder.step(8 - token / 5 % 7);
	return 0;
}
