/* SPDX-License-Identifier: MIT */
/* Captures a graph for each batch, launches it once, and destroys the graph but not what was made of it. */
#include "../../apps/gpu.h"

static void *stream;

struct captured {
	void *graph, *exec;
	address workspace;
};

static void add_workspace(struct captured *c, size_t bytes)
{
	struct alloc_node node = {.pool = {.alloc_type = 1, .location = {1, 0}}, .bytes = bytes};
	void *where;
	OK(cuGraphAddMemAllocNode(&where, c->graph, NULL, 0, &node));
	c->workspace = node.ptr;
}

static void capture(struct captured *c, size_t bytes)
{
	OK(cuGraphCreate(&c->graph, 0));
	add_workspace(c, bytes);				/* CULPRIT */
	OK(cuGraphInstantiateWithFlags(&c->exec, c->graph, 0)); /* CULPRIT */
}

static void replay_once(size_t bytes)
{
	struct captured c;
	capture(&c, bytes);
	OK(cuGraphLaunch(c.exec, stream));
	OK(cuGraphDestroy(c.graph));
}

int main(void)
{
	void *context;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	for (int batch = 0; batch < 1200; batch++)
		replay_once((1 + batch % 3) * MB);
	return 0;
}
