/* SPDX-License-Identifier: MIT */
/* One graph for each of four shapes, made at first sight and launched many times. */
#include "../../apps/gpu.h"

static void *stream, *execs[4];

static void *build(size_t bytes)
{
	struct alloc_node node = {.pool = {.alloc_type = 1, .location = {1, 0}}, .bytes = bytes};
	void *graph, *where, *exec;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&where, graph, NULL, 0, &node));
	OK(cuGraphAddMemFreeNode(&where, graph, &where, 1, node.ptr));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	return exec;
}

static void run(int shape)
{
	if (!execs[shape])
		execs[shape] = build((shape + 1) * 3 * MB);
	OK(cuGraphLaunch(execs[shape], stream));
}

int main(void)
{
	void *context;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	for (int i = 0; i < 400; i++)
		run(i % 4);
	for (int i = 0; i < 4; i++)
		OK(cuGraphExecDestroy(execs[i]));
	return 0;
}
