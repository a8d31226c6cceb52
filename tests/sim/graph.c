/* SPDX-License-Identifier: MIT */
/*
 * Graph memory. Adding an allocation node fixes an address; a launch makes it resident; a free node, or a free call
 * after the launch, frees it. Each device keeps what its graphs once needed (reserved) until it is trimmed. A graph and
 * its executables share their nodes, which live until the last of these is destroyed. Memory that a launch left
 * allocated stays until it is freed.
 * Longer than other files: nodes, graphs and launches name each other.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define PTSZ(stream) ((stream) ? (stream) : (void *)2)
enum { NODE_EMPTY = 5, NODE_MEM_ALLOC = 10, NODE_MEM_FREE = 11, AUTO_FREE_ON_LAUNCH = 1 };

struct mem_alloc_params { /* CUDA_MEM_ALLOC_NODE_PARAMS */
	int alloc_type, handle_types, location_type, location_id;
	char rest[72];
	const void *access;
	size_t access_count, bytes;
	uint64_t address;
};
_Static_assert(offsetof(struct mem_alloc_params, access) == 88, "as the vendor lays it out");

struct node_params { /* CUgraphNodeParams */
	int type, reserved[3];
	union {
		struct mem_alloc_params alloc;
		uint64_t free_address;
		long long pad[29];
	};
	long long reserved2;
};

struct sim_node {
	struct sim_object object;
	struct sim_graph *graph;
	int type, device;
	uint64_t address, bytes;
	struct sim_block *block; /* while allocated */
	struct sim_node *next;
};

struct sim_graph {
	struct sim_object object;
	struct sim_node *nodes, **tail;
	int executables;
	bool destroyed;
	uint64_t id;
};

struct exec {
	struct sim_object object;
	struct sim_graph *graph;
	unsigned long long flags;
};

static struct {
	uint64_t used, used_high, reserved, reserved_high;
} memory[SIM_MAX_DEVICES];
static uint64_t next_id = 1;

static uint64_t charge_of(uint64_t bytes)
{
	return sim_round_up(bytes, sim_config.granularity);
}

static int make_resident(int device, uint64_t bytes)
{
	uint64_t used = memory[device].used + charge_of(bytes);
	if (used > memory[device].reserved) {
		int error = sim_device_take(device, used - memory[device].reserved);
		if (error)
			return error;
		memory[device].reserved = used;
	}
	memory[device].used = used;
	if (used > memory[device].used_high)
		memory[device].used_high = used;
	if (memory[device].reserved > memory[device].reserved_high)
		memory[device].reserved_high = memory[device].reserved;
	return SIM_OK;
}

/* Called for every graph block that is freed, for any reason. */
void sim_graph_block_gone(struct sim_block *block)
{
	if (block->flags) /* resident */
		memory[block->device].used -= charge_of(block->bytes);
	if (block->node)
		block->node->block = NULL;
	else
		sim_va_give(block->device, block->object.key, block->bytes);
}

struct sim_graph *sim_graph_new(struct sim_ctx *ctx)
{
	struct sim_graph *graph = sim_object_new(sizeof *graph, SIM_T_GRAPH, NULL);
	if (!graph)
		return NULL;
	graph->tail = &graph->nodes;
	graph->id = next_id++;
	return graph;
}

uint64_t sim_graph_id(struct sim_graph *graph)
{
	return graph->id;
}

static struct sim_graph *graph_of(void *handle)
{
	struct sim_graph *graph = sim_object_get((uintptr_t)handle, SIM_T_GRAPH);
	return graph && !graph->destroyed ? graph : NULL;
}

static void bury(struct sim_call *call, struct sim_graph *graph)
{
	while (graph->nodes) {
		struct sim_node *node = graph->nodes;
		graph->nodes = node->next;
		if (node->block && node->block->flags)
			node->block->node = NULL; /* stays until the program frees it */
		else if (node->block)
			sim_block_drop(node->block, call, SIM_EFFECT_IMPLICIT);
		if (node->type == NODE_MEM_ALLOC && !(node->block && !node->block->node))
			sim_va_give(node->device, node->address, node->bytes);
		sim_object_remove(&node->object);
		free(node);
	}
	sim_object_remove(&graph->object);
	free(graph);
}

static struct sim_node *new_node(struct sim_graph *graph, int type)
{
	struct sim_node *node = sim_object_new(sizeof *node, SIM_T_NODE, NULL);
	if (!node)
		return NULL;
	node->graph = graph;
	node->type = type;
	*graph->tail = node;
	graph->tail = &node->next;
	return node;
}

static int add_alloc(struct sim_call *call, struct sim_graph *graph, int device, uint64_t bytes, uint64_t *address, void **out)
{
	call->device = device;
	call->bytes = bytes;
	if (!graph || !bytes)
		return SIM_INVALID_VALUE;
	if (sim_device_physical(device) < 0)
		return SIM_INVALID_DEVICE;
	uint64_t at = sim_va_take(device, bytes);
	struct sim_node *node = at ? new_node(graph, NODE_MEM_ALLOC) : NULL;
	if (!node)
		return SIM_OUT_OF_MEMORY;
	node->device = device;
	node->address = at;
	node->bytes = bytes;
	if (!call->ctx)
		call->ctx = sim_ctx_current();
	node->block = sim_block_add(call, SIM_KIND_GRAPH, device, at, bytes);
	node->block->node = node;
	call->address = *address = at;
	if (out)
		*out = node;
	return SIM_OK;
}

static int add_free(struct sim_call *call, struct sim_graph *graph, uint64_t address, void **out)
{
	struct sim_block *block = sim_object_get(address, SIM_T_BLOCK);
	if (!graph || !block || block->object.key != address || block->kind != SIM_KIND_GRAPH)
		return SIM_INVALID_VALUE;
	struct sim_node *node = new_node(graph, NODE_MEM_FREE);
	if (!node)
		return SIM_OUT_OF_MEMORY;
	node->address = call->address = address;
	if (out)
		*out = node;
	return SIM_OK;
}

int sim_graph_capture_alloc(struct sim_call *call, struct sim_graph *graph, int device, uint64_t bytes, uint64_t *out)
{
	call->kind = SIM_KIND_GRAPH;
	return add_alloc(call, graph, device, bytes, out, NULL);
}

int sim_graph_capture_free(struct sim_call *call, struct sim_graph *graph, uint64_t address)
{
	call->kind = SIM_KIND_GRAPH;
	return add_free(call, graph, address, NULL);
}

int sim_graph_free_block(struct sim_call *call, struct sim_block *block)
{
	if (!block->flags)
		return SIM_INVALID_VALUE; /* not launched: there is nothing to free yet */
	sim_block_drop(block, call, SIM_EFFECT_FREE);
	return SIM_OK;
}

int cuGraphCreate(void **out, unsigned flags)
{
	SIM_BEGIN(cuGraphCreate, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	if (!out || flags)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = sim_graph_new(NULL);
	SIM_RETURN(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

int cuGraphDestroy(void *handle)
{
	SIM_BEGIN(cuGraphDestroy, OTHER, .other = (uintptr_t)handle, .needs = 1);
	struct sim_graph *graph = graph_of(handle);
	if (!graph)
		SIM_RETURN(SIM_INVALID_VALUE);
	graph->destroyed = true;
	if (!graph->executables)
		bury(&call, graph);
	SIM_RETURN(SIM_OK);
}

int cuGraphAddEmptyNode(void **out, void *handle, void *const *dependencies, size_t count)
{
	SIM_BEGIN(cuGraphAddEmptyNode, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	struct sim_graph *graph = graph_of(handle);
	if (!graph || !out)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = new_node(graph, NODE_EMPTY);
	SIM_RETURN(SIM_OK);
}

int cuGraphAddMemAllocNode(void **out, void *graph, void *const *dependencies, size_t count, struct mem_alloc_params *p)
{
	SIM_BEGIN(cuGraphAddMemAllocNode, ALLOC, .kind = SIM_KIND_GRAPH, .out = {SIM_OUT(out)}, .bytes = p ? p->bytes : 0,
		  .device = p ? p->location_id : -1, .other = (uintptr_t)graph, .needs = 1);
	if (!out || !p || p->location_type != 1)
		SIM_RETURN(SIM_INVALID_VALUE);
	SIM_RETURN(add_alloc(&call, graph_of(graph), p->location_id, p->bytes, &p->address, out));
}

int cuGraphAddMemFreeNode(void **out, void *graph, void *const *dependencies, size_t count, uint64_t address)
{
	SIM_BEGIN(cuGraphAddMemFreeNode, OTHER, .kind = SIM_KIND_GRAPH, .out = {SIM_OUT(out)}, .address = address,
		  .other = (uintptr_t)graph, .needs = 1);
	SIM_RETURN(out ? add_free(&call, graph_of(graph), address, out) : SIM_INVALID_VALUE);
}

static int add_any(struct sim_call *call, void **out, void *handle, struct node_params *p)
{
	struct sim_graph *graph = graph_of(handle);
	if (!out || !graph || !p)
		return SIM_INVALID_VALUE;
	call->other = (uintptr_t)handle;
	if (p->type == NODE_MEM_ALLOC)
		return add_alloc(call, graph, p->alloc.location_id, p->alloc.bytes, &p->alloc.address, out);
	if (p->type == NODE_MEM_FREE)
		return add_free(call, graph, p->free_address, out);
	*out = new_node(graph, p->type);
	return SIM_OK;
}

/* One call adds a node of any type: the parameters say whether it allocates. */
#define ADD_NODE(fn, params)                                                                                                       \
	int fn params                                                                                                              \
	{                                                                                                                          \
		static struct sim_api apis[2] = {{.name = #fn, .verb = SIM_OTHER}, {.name = #fn, .verb = SIM_ALLOC}};              \
		bool alloc = p && p->type == NODE_MEM_ALLOC;                                                                       \
		struct sim_call call = {.api = &apis[alloc],                                                                       \
					.kind = SIM_KIND_GRAPH,                                                                    \
					.needs = 1,                                                                                \
					.device = alloc ? p->alloc.location_id : -1,                                               \
					.bytes = alloc ? p->alloc.bytes : 0,                                                       \
					.out = {SIM_OUT(out)}};                                                                    \
		if (sim_enter(&call))                                                                                              \
			SIM_RETURN(call.result);                                                                                   \
		SIM_RETURN(add_any(&call, out, graph, p));                                                                         \
	}
ADD_NODE(cuGraphAddNode, (void **out, void *graph, void *const *dependencies, size_t count, struct node_params *p))
ADD_NODE(cuGraphAddNode_v2,
	 (void **out, void *graph, void *const *dependencies, const void *edges, size_t count, struct node_params *p))

int cuGraphMemAllocNodeGetParams(void *handle, struct mem_alloc_params *out)
{
	SIM_BEGIN(cuGraphMemAllocNodeGetParams, QUIET, .needs = 1);
	struct sim_node *node = sim_object_get((uintptr_t)handle, SIM_T_NODE);
	if (!node || node->type != NODE_MEM_ALLOC || !out)
		SIM_RETURN(SIM_INVALID_VALUE);
	memset(out, 0, sizeof *out);
	out->alloc_type = out->location_type = 1;
	out->location_id = node->device;
	out->bytes = node->bytes;
	out->address = node->address;
	SIM_RETURN(SIM_OK);
}

/* A graph with allocation nodes has one executable at a time. */
static int instantiate(struct sim_call *call, void **out, void *handle, unsigned long long flags)
{
	struct sim_graph *graph = graph_of(handle);
	if (!graph || !out)
		return SIM_INVALID_VALUE;
	for (struct sim_node *node = graph->nodes; node; node = node->next)
		if (node->type == NODE_MEM_ALLOC && graph->executables)
			return SIM_NOT_SUPPORTED;
	struct exec *exec = sim_object_new(sizeof *exec, SIM_T_EXEC, NULL);
	if (!exec)
		return SIM_OUT_OF_MEMORY;
	exec->graph = graph;
	exec->flags = flags;
	graph->executables++;
	call->other = (uintptr_t)handle;
	*out = exec;
	return SIM_OK;
}

int cuGraphInstantiate(void **out, void *graph, void **node, char *log, size_t size)
{
	SIM_BEGIN(cuGraphInstantiate, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(instantiate(&call, out, graph, 0));
}

int cuGraphInstantiate_v2(void **out, void *graph, void **node, char *log, size_t size)
{
	SIM_BEGIN(cuGraphInstantiate_v2, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(instantiate(&call, out, graph, 0));
}

int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{
	SIM_BEGIN(cuGraphInstantiateWithFlags, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(instantiate(&call, out, graph, flags));
}

int cuGraphInstantiateWithParams(void **out, void *graph, unsigned long long *params)
{
	SIM_BEGIN(cuGraphInstantiateWithParams, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(params ? instantiate(&call, out, graph, params[0]) : SIM_INVALID_VALUE);
}

int cuGraphInstantiateWithParams_ptsz(void **out, void *graph, unsigned long long *params)
{
	SIM_BEGIN(cuGraphInstantiateWithParams_ptsz, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(params ? instantiate(&call, out, graph, params[0]) : SIM_INVALID_VALUE);
}

static bool freed_inside(struct sim_graph *graph, uint64_t address)
{
	for (struct sim_node *node = graph->nodes; node; node = node->next)
		if (node->type == NODE_MEM_FREE && node->address == address)
			return true;
	return false;
}

static int launch_alloc(struct sim_call *call, struct exec *exec, struct sim_node *node)
{
	bool inside = freed_inside(exec->graph, node->address);
	if (!node->block && inside)
		return make_resident(node->device, node->bytes); /* a later launch: it comes and goes within it */
	if (node->block && node->block->flags) {		 /* left by the launch before */
		if (!(exec->flags & AUTO_FREE_ON_LAUNCH))
			return SIM_INVALID_VALUE;
		sim_block_drop(node->block, call, SIM_EFFECT_IMPLICIT);
	}
	int error = make_resident(node->device, node->bytes);
	if (error)
		return error;
	if (!node->block) {
		node->block = sim_block_add(call, SIM_KIND_GRAPH, node->device, node->address, node->bytes);
		node->block->node = node;
	}
	node->block->flags = 1;
	return SIM_OK;
}

static void launch_free(struct sim_call *call, struct exec *exec, struct sim_node *node)
{
	struct sim_block *block = sim_object_get(node->address, SIM_T_BLOCK);
	if (block && block->kind == SIM_KIND_GRAPH) {
		sim_block_drop(block, call, SIM_EFFECT_IMPLICIT);
		return;
	}
	for (struct sim_node *from = exec->graph->nodes; from; from = from->next)
		if (from->type == NODE_MEM_ALLOC && from->address == node->address)
			memory[from->device].used -= charge_of(from->bytes);
}

static int launch(struct sim_call *call, void *handle, void *stream)
{
	struct exec *exec = sim_object_get((uintptr_t)handle, SIM_T_EXEC);
	if (!exec)
		return SIM_INVALID_VALUE;
	if (!sim_stream_of(call, stream))
		return SIM_INVALID_HANDLE;
	call->other = (uintptr_t)exec->graph;
	for (struct sim_node *node = exec->graph->nodes; node; node = node->next) {
		int error = node->type == NODE_MEM_ALLOC ? launch_alloc(call, exec, node) : SIM_OK;
		if (error)
			return error;
		if (node->type == NODE_MEM_FREE)
			launch_free(call, exec, node);
	}
	return SIM_OK;
}

int cuGraphLaunch(void *exec, void *stream)
{
	SIM_BEGIN(cuGraphLaunch, OTHER, .needs = 0);
	SIM_RETURN(launch(&call, exec, stream));
}

int cuGraphLaunch_ptsz(void *exec, void *stream)
{
	SIM_BEGIN(cuGraphLaunch_ptsz, OTHER, .needs = 0);
	SIM_RETURN(launch(&call, exec, PTSZ(stream)));
}

/* All nodes; a capture has added only those of memory. */
int cuGraphGetNodes(void *handle, void **out, size_t *count)
{
	SIM_BEGIN(cuGraphGetNodes, QUIET, .needs = 0);
	struct sim_graph *graph = sim_object_get((uintptr_t)handle, SIM_T_GRAPH);
	size_t n = 0;
	if (!graph || !count)
		SIM_RETURN(SIM_INVALID_VALUE);
	for (struct sim_node *node = graph->nodes; node && (!out || n < *count); node = node->next) {
		if (out)
			out[n] = node;
		n++;
	}
	*count = n;
	SIM_RETURN(SIM_OK);
}

int cuGraphUpload(void *exec, void *stream)
{
	SIM_BEGIN(cuGraphUpload, OTHER, .needs = 0);
	SIM_RETURN(sim_object_get((uintptr_t)exec, SIM_T_EXEC) ? SIM_OK : SIM_INVALID_VALUE);
}

int cuGraphUpload_ptsz(void *exec, void *stream)
{
	SIM_BEGIN(cuGraphUpload_ptsz, OTHER, .needs = 0);
	SIM_RETURN(sim_object_get((uintptr_t)exec, SIM_T_EXEC) ? SIM_OK : SIM_INVALID_VALUE);
}

int cuGraphExecDestroy(void *handle)
{
	SIM_BEGIN(cuGraphExecDestroy, OTHER, .other = (uintptr_t)handle, .needs = 1);
	struct exec *exec = sim_object_get((uintptr_t)handle, SIM_T_EXEC);
	if (!exec)
		SIM_RETURN(SIM_INVALID_VALUE);
	struct sim_graph *graph = exec->graph;
	sim_object_remove(&exec->object);
	free(exec);
	if (!--graph->executables && graph->destroyed)
		bury(&call, graph);
	SIM_RETURN(SIM_OK);
}

int cuDeviceGraphMemTrim(int device)
{
	SIM_BEGIN(cuDeviceGraphMemTrim, OTHER, .device = device, .needs = 1);
	if (sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	sim_device_give(device, memory[device].reserved - memory[device].used);
	memory[device].reserved = memory[device].used;
	SIM_RETURN(SIM_OK);
}

int cuDeviceGetGraphMemAttribute(int device, int which, uint64_t *value)
{
	SIM_BEGIN(cuDeviceGetGraphMemAttribute, QUIET, .needs = 1);
	if (sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	if (!value || which < 0 || which > 3)
		SIM_RETURN(SIM_INVALID_VALUE);
	const uint64_t values[] = {memory[device].used, memory[device].used_high, memory[device].reserved,
				   memory[device].reserved_high};
	*value = values[which];
	SIM_RETURN(SIM_OK);
}

int cuDeviceSetGraphMemAttribute(int device, int which, uint64_t *value)
{
	SIM_BEGIN(cuDeviceSetGraphMemAttribute, QUIET, .needs = 1);
	if (sim_device_physical(device) < 0 || !value || *value || (which != 1 && which != 3))
		SIM_RETURN(SIM_INVALID_VALUE);
	if (which == 1)
		memory[device].used_high = memory[device].used;
	else
		memory[device].reserved_high = memory[device].reserved;
	SIM_RETURN(SIM_OK);
}

/* ---- capture ---- */

static int begin_capture(struct sim_call *call, void *handle, struct sim_graph *into)
{
	struct sim_stream *stream = sim_stream_of(call, handle);
	if (!stream)
		return SIM_INVALID_HANDLE;
	if (!handle || handle == (void *)1 || stream->capture)
		return SIM_CAPTURE_UNSUPPORTED; /* the legacy stream cannot be captured */
	stream->capture = into ? into : sim_graph_new(NULL);
	stream->capture_broken = false;
	return stream->capture ? SIM_OK : SIM_OUT_OF_MEMORY;
}

static int end_capture(struct sim_call *call, void *handle, void **out)
{
	struct sim_stream *stream = sim_stream_of(call, handle);
	if (!stream || !out)
		return SIM_INVALID_VALUE;
	if (!stream->capture)
		return 401; /* illegal state */
	*out = stream->capture;
	stream->capture = NULL;
	if (!stream->capture_broken)
		return SIM_OK;
	*out = NULL;
	return SIM_CAPTURE_INVALIDATED;
}

static int capture_state(struct sim_call *call, void *handle, int *status, uint64_t *id, void **graph)
{
	struct sim_stream *stream = sim_stream_of(call, handle);
	if (!stream || !status)
		return SIM_INVALID_VALUE;
	*status = !stream->capture ? 0 : stream->capture_broken ? 2 : 1;
	if (id)
		*id = stream->capture ? stream->capture->id : 0;
	if (graph)
		*graph = stream->capture;
	return SIM_OK;
}

#define STREAM_PAIR(fn, params, expression)                                                                                        \
	int fn params                                                                                                              \
	{                                                                                                                          \
		SIM_BEGIN(fn, QUIET);                                                                                              \
		SIM_RETURN(expression);                                                                                            \
	}                                                                                                                          \
	int fn##_ptsz params                                                                                                       \
	{                                                                                                                          \
		SIM_BEGIN(fn##_ptsz, QUIET);                                                                                       \
		s = PTSZ(s);                                                                                                       \
		SIM_RETURN(expression);                                                                                            \
	}
STREAM_PAIR(cuStreamBeginCapture, (void *s), begin_capture(&call, s, NULL))
STREAM_PAIR(cuStreamBeginCapture_v2, (void *s, int mode), begin_capture(&call, s, NULL))
STREAM_PAIR(cuStreamBeginCaptureToGraph, (void *s, void *graph, void *const *deps, const void *data, size_t n, int mode),
	    begin_capture(&call, s, graph_of(graph)))
STREAM_PAIR(cuStreamEndCapture, (void *s, void **graph), end_capture(&call, s, graph))
STREAM_PAIR(cuStreamIsCapturing, (void *s, int *status), capture_state(&call, s, status, NULL, NULL))
STREAM_PAIR(cuStreamGetCaptureInfo, (void *s, int *status, uint64_t *id), capture_state(&call, s, status, id, NULL))
STREAM_PAIR(cuStreamGetCaptureInfo_v2, (void *s, int *status, uint64_t *id, void **graph, const void **deps, size_t *n),
	    capture_state(&call, s, status, id, graph))
STREAM_PAIR(cuStreamGetCaptureInfo_v3,
	    (void *s, int *status, uint64_t *id, void **graph, const void **deps, const void **edges, size_t *n),
	    capture_state(&call, s, status, id, graph))
