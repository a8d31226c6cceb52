/* SPDX-License-Identifier: MIT */
/* A graph for each batch size is captured when the size first comes, and kept with its buffer; a quarter of the run has met all sizes.  Healthy. */
#include <stdlib.h>

#include "../../apps/gpu.h"

enum { LAUNCHES = 4000, SIZES = 24 };

struct captured {
	void *graph, *exec;
	address buffer;
};

static void capture(struct captured *c, size_t size)
{
	struct alloc_node node = {.pool = {.alloc_type = 1, .location = {1, 0}}, .bytes = size * 100000};
	void *made, *freed;

	OK(cuMemAlloc_v2(&c->buffer, size * 65536));
	OK(cuGraphCreate(&c->graph, 0));
	OK(cuGraphAddMemAllocNode(&made, c->graph, NULL, 0, &node));
	OK(cuGraphAddMemFreeNode(&freed, c->graph, &made, 1, node.ptr));
	OK(cuGraphInstantiateWithFlags(&c->exec, c->graph, 0));
}

int main(void)
{
	static struct captured of[SIZES + 1];
	void *context, *stream;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	srand(5);
	for (int i = 0; i < LAUNCHES; i++) {
		int size = 1 + rand() % (i < LAUNCHES / 5 ? 4 : SIZES);

		if (!of[size].exec)
			capture(&of[size], (size_t)size);
		OK(cuGraphLaunch(of[size].exec, stream));
	}
	for (int size = 1; size <= SIZES; size++) {
		OK(cuGraphExecDestroy(of[size].exec));
		OK(cuGraphDestroy(of[size].graph));
		OK(cuMemFree_v2(of[size].buffer));
	}
}
