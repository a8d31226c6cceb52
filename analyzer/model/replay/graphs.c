/* SPDX-License-Identifier: MIT */
/*
 * Memory of graphs.  A block begins when its allocation node is added.  It ends when an executable with its free node is
 * launched, by a free call, or, if it was never launched, when its graph and every executable made from it are destroyed.
 * Memory that a launch left allocated outlives them; a later successful launch frees it first.
 */
#include "analyzer/model/replay/replay.h"

#include "analyzer/base/memory.h"

#define LOOKS_OF_BLOCK 8 /* looks (ledger.h) that a block's begin or end costs */

struct graph {
	uint64_t handle;
	size_t at; /* its index in `graphs` */
	bool destroyed;
	unsigned execs;			  /* live executables made from it */
	SL_VECTOR(uint64_t) frees;	  /* addresses of its free nodes */
	struct sl_table freed;		  /* the same addresses, for look-up */
	SL_VECTOR(struct sl_live) allocs; /* blocks that its allocation nodes make */
	SL_VECTOR(struct sl_live) left;	  /* those of `allocs` that it does not free */
	SL_VECTOR(uint64_t) foreign;	  /* addresses of other graphs' blocks that it frees */
	bool settled;		  /* it was launched with all its nodes: further launches change only `left` and `foreign` */
	SL_VECTOR(uint64_t) made; /* addresses of all blocks that were made for it */
};

/* The tables name graphs by their index. */
struct sl_graphs {
	SL_VECTOR(struct graph *) graphs; /* NULL: unused */
	SL_VECTOR(size_t) unused;
	struct sl_table living; /* by handle: graphs that are not destroyed */
	struct sl_table execs;	/* by the executable's handle */
};

struct sl_graphs *sl_graphs_new(void)
{
	return sl_memory_must(calloc(1, sizeof(struct sl_graphs)));
}

static void free_graph(struct graph *graph)
{
	if (!graph)
		return;
	free(graph->frees.item);
	sl_table_free(&graph->freed);
	free(graph->allocs.item);
	free(graph->left.item);
	free(graph->foreign.item);
	free(graph->made.item);
	free(graph);
}

void sl_graphs_free(struct sl_graphs *graphs)
{
	if (!graphs)
		return;
	for (size_t i = 0; i < graphs->graphs.count; i++)
		free_graph(graphs->graphs.item[i]);
	free(graphs->graphs.item);
	free(graphs->unused.item);
	sl_table_free(&graphs->living);
	sl_table_free(&graphs->execs);
	free(graphs);
}

/* A table has no key 0. */
static uint64_t key_of(uint64_t handle)
{
	return handle ? handle : UINT64_MAX;
}

/* The living graph with this handle.  An unknown one is made here, since a capture begins a graph without a call. */
static struct graph *graph_of(struct sl_graphs *graphs, uint64_t handle)
{
	const struct sl_live *found = sl_table_find(&graphs->living, key_of(handle));
	struct graph *graph;

	if (found)
		return graphs->graphs.item[found->owner];
	graph = sl_memory_must(calloc(1, sizeof(*graph)));
	graph->handle = handle;
	if (graphs->unused.count) {
		graph->at = graphs->unused.item[--graphs->unused.count];
	} else {
		graph->at = graphs->graphs.count;
		SL_ROOM(&graphs->graphs);
		graphs->graphs.count++;
	}
	graphs->graphs.item[graph->at] = graph;
	sl_table_add(&graphs->living, key_of(handle))->owner = graph->at;
	return graph;
}

static void end_block(struct sl_model *model, uint64_t address)
{
	struct sl_live *live = sl_table_find(&model->pointers, address), block;

	if (!live || model->sites.item[live->site].kind != SL_KIND_graph)
		return;
	block = *live;
	sl_table_remove(&model->pointers, live);
	sl_ledger_end_block(model, block.site, block.bytes, block.time_ns, SL_END_IMPLICIT);
	sl_ledger_ended(model, &block);
}

/* Called when neither the graph nor an executable of it is left. */
static void end_graph(struct sl_model *model, struct graph *graph)
{
	for (size_t i = 0; i < graph->made.count; i++) {
		const struct sl_live *live = sl_table_find(&model->pointers, graph->made.item[i]);

		if (live && live->owner == graph->handle && !(live->flags & SL_LIVE_LAUNCHED))
			end_block(model, graph->made.item[i]);
	}
	model->graphs->graphs.item[graph->at] = NULL;
	*SL_PUSH(&model->graphs->unused) = graph->at;
	free_graph(graph);
}

static struct graph *graph_of_exec(const struct sl_graphs *graphs, uint64_t handle)
{
	const struct sl_live *found = sl_table_find(&graphs->execs, key_of(handle));

	return found ? graphs->graphs.item[found->owner] : NULL;
}

static void destroy_exec(struct sl_model *model, uint64_t handle)
{
	struct graph *graph = graph_of_exec(model->graphs, handle);

	if (!graph)
		return;
	sl_table_remove(&model->graphs->execs, sl_table_find(&model->graphs->execs, key_of(handle)));
	if (!--graph->execs && graph->destroyed)
		end_graph(model, graph);
}

static void instantiate(struct sl_model *model, const struct sl_event *event)
{
	struct graph *graph;

	destroy_exec(model, event->address); /* the handle is in use again: its end was not seen */
	graph = graph_of(model->graphs, event->object);
	sl_table_add(&model->graphs->execs, key_of(event->address))->owner = graph->at;
	graph->execs++;
}

static void destroy_graph(struct sl_model *model, uint64_t handle)
{
	struct graph *graph = graph_of(model->graphs, handle);

	graph->destroyed = true;
	sl_table_remove(&model->graphs->living, sl_table_find(&model->graphs->living, key_of(handle)));
	if (!graph->execs)
		end_graph(model, graph);
}

void sl_graphs_made(struct sl_model *model, uint64_t handle, uint64_t address)
{
	*SL_PUSH(&graph_of(model->graphs, handle)->made) = address;
}

static struct sl_live *begin_block(struct sl_model *model, const struct sl_live *made)
{
	struct sl_live *live = sl_table_add(&model->pointers, made->address);

	*live = *made;
	live->time_ns = model->now_ns;
	sl_by_context_add(&model->pointers, model, sl_contexts_key, live);
	sl_ledger_begin_block(model, made->site, made->bytes);
	return live;
}

static void add_node(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct graph *graph;
	struct sl_live made;

	if (!event->address || !event->bytes || sl_table_find(&model->pointers, event->address))
		return;
	graph = graph_of(model->graphs, event->object);
	made = (struct sl_live){
		.address = event->address,
		.bytes = event->bytes,
		.owner = event->object,
		.site = sl_ledger_site(model, event, item->thread, SL_KIND_graph, (int)event->device),
		.thread = item->thread,
		.refs = 1,
	};
	*SL_PUSH(&graph->allocs) = made;
	graph->settled = false;
	*SL_PUSH(&graph->made) = made.address;
	begin_block(model, &made);
}

static void launch_node(struct sl_model *model, const struct graph *graph, const struct sl_live *made)
{
	struct sl_live *live = sl_table_find(&model->pointers, made->address);

	if (live && live->flags & SL_LIVE_LAUNCHED) { /* the previous launch left it allocated */
		end_block(model, made->address);
		live = NULL;
	}
	if (!live && sl_table_find(&graph->freed, made->address))
		return; /* in a later launch the block begins and ends within it */
	if (!live)
		live = begin_block(model, made);
	live->flags |= SL_LIVE_LAUNCHED;
}

/* Lists what later launches change; blocks that the graph frees itself are not among it. */
static void settle(struct graph *graph)
{
	struct sl_table own = {0};

	graph->left.count = graph->foreign.count = 0;
	for (size_t i = 0; i < graph->allocs.count; i++) {
		const struct sl_live *made = &graph->allocs.item[i];

		if (!sl_table_find(&own, made->address))
			sl_table_add(&own, made->address);
		if (!sl_table_find(&graph->freed, made->address))
			*SL_PUSH(&graph->left) = *made;
	}
	for (size_t i = 0; i < graph->frees.count; i++)
		if (!sl_table_find(&own, graph->frees.item[i]))
			*SL_PUSH(&graph->foreign) = graph->frees.item[i];
	sl_table_free(&own);
	graph->settled = true;
}

static void launch(struct sl_model *model, struct graph *graph)
{
	bool settled = graph->settled;
	const struct sl_live *allocs = settled ? graph->left.item : graph->allocs.item;
	const uint64_t *frees = settled ? graph->foreign.item : graph->frees.item;
	size_t alloc_count = settled ? graph->left.count : graph->allocs.count,
	       free_count = settled ? graph->foreign.count : graph->frees.count;

	if (!sl_ledger_may_look(model, LOOKS_OF_BLOCK * (alloc_count + free_count)))
		return; /* a failed launch frees nothing */
	for (size_t i = 0; i < alloc_count; i++)
		launch_node(model, graph, &allocs[i]);
	for (size_t i = 0; i < free_count; i++)
		end_block(model, frees[i]);
	if (!settled)
		settle(graph);
}

void sl_graphs_free_node(struct sl_model *model, uint64_t handle, uint64_t address)
{
	struct graph *graph = graph_of(model->graphs, handle);

	if (!address || sl_table_find(&graph->freed, address))
		return;
	sl_table_add(&graph->freed, address);
	*SL_PUSH(&graph->frees) = address;
	graph->settled = false;
}

void sl_graphs_apply(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct graph *graph;

	if (event->result) {
		if (item->hook->verb == SL_VERB_GRAPH_ALLOC || item->hook->verb == SL_VERB_ALLOC)
			sl_ledger_row(model, SL_KIND_graph, event->device)->failed_allocations++;
		return;
	}
	switch (item->hook->verb) {
	case SL_VERB_ALLOC: /* captured: becomes a node, as in FREE below */
	case SL_VERB_GRAPH_ALLOC:
		add_node(model, item);
		break;
	case SL_VERB_FREE:
	case SL_VERB_GRAPH_FREE:
		sl_graphs_free_node(model, event->object, event->address);
		break;
	case SL_VERB_GRAPH_INSTANTIATE:
		instantiate(model, event);
		break;
	case SL_VERB_GRAPH_LAUNCH:
		model->tracks.launches++;
		graph = graph_of_exec(model->graphs, event->address);
		if (graph)
			launch(model, graph);
		break;
	case SL_VERB_GRAPH_DESTROY:
		destroy_graph(model, event->address);
		break;
	case SL_VERB_EXEC_DESTROY:
		destroy_exec(model, event->address);
		break;
	default:
		break; /* a graph becomes known with its first node */
	}
}
