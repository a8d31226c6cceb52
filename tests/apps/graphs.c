/* SPDX-License-Identifier: MIT */
/* graphs: allocation nodes added by three functions; freed inside the graph, by the program after a launch, or with the graph. */
#include "gpu.h"

enum { ALLOC = 10, FREE = 11 };

static uint64_t resident(int which)
{
	uint64_t value = 0;
	OK(cuDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

int main(void)
{
	void *ctx, *graph, *node, *exec, *stream;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamCreate(&stream, 1));

	struct alloc_node a = {.pool = {.alloc_type = 1, .location = {1, 0}}, .bytes = 4 * MB};
	OK(cuGraphCreate(&graph, 0)); /* allocated and freed within the graph */
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &a));
	OK(cuGraphAddMemFreeNode(&node, graph, &node, 1, a.ptr));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(resident(0) == 0);
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	CHECK(resident(0) == 0 && resident(2) == 4 * MB);
	OK(cuDeviceGraphMemTrim(0));
	CHECK(resident(2) == 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));

	struct node_params add = {.type = ALLOC, .alloc = {.pool = {.alloc_type = 1, .location = {1, 0}}, .bytes = 6 * MB}};
	OK(cuGraphCreate(&graph, 0)); /* freed by the program after the launch */
	OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &add));
	address p = add.alloc.ptr;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	CHECK(resident(0) == 6 * MB);
	CHECK(cuGraphLaunch(exec, stream) == 1);
	OK(cuMemFree_v2(p));
	CHECK(resident(0) == 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));

	add = (struct node_params){.type = ALLOC, .alloc = {.pool = {.alloc_type = 1, .location = {1, 0}}, .bytes = 8 * MB}};
	OK(cuGraphCreate(&graph, 0)); /* never launched: goes with the graph */
	OK(cuGraphAddNode(&node, graph, NULL, 0, &add));
	OK(cuGraphDestroy(graph));
	OK(cuDeviceGraphMemTrim(0));
	return 0;
}
