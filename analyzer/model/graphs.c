/* SPDX-License-Identifier: MIT */
/*
 * Memory of graphs.  A block begins when its allocation node is added.  It ends when an executable with its free node is
 * launched, by a free call, or, if it was never launched, when its graph and every executable made from it are destroyed.
 * Memory that a launch left allocated outlives them; a later successful launch frees it first.
 */
#include "analyzer/model/verbs.h"

#include "analyzer/base/memory.h"

struct graph {
	uint64_t handle;
	bool destroyed;
	unsigned execs;			  /* live executables made from it */
	SL_VECTOR(uint64_t) frees;	  /* addresses of its free nodes */
	SL_VECTOR(struct sl_live) allocs; /* blocks that its allocation nodes make */
};

struct exec {
	uint64_t handle;
	struct graph *graph;
};

struct sl_graphs {
	SL_VECTOR(struct graph *) graphs;
	SL_VECTOR(struct exec) execs;
};

struct sl_graphs *sl_graphs_new(void)
{
	struct sl_graphs *graphs = sl_memory_must(calloc(1, sizeof(*graphs)));

	return graphs;
}

void sl_graphs_free(struct sl_graphs *graphs)
{
	if (!graphs)
		return;
	for (size_t i = 0; i < graphs->graphs.count; i++) {
		free(graphs->graphs.item[i]->frees.item);
		free(graphs->graphs.item[i]->allocs.item);
		free(graphs->graphs.item[i]);
	}
	free(graphs->graphs.item);
	free(graphs->execs.item);
	free(graphs);
}

/* The living graph with this handle.  It is made here where it is unknown, since a capture begins one without a call. */
static struct graph *graph_of(struct sl_graphs *graphs, uint64_t handle)
{
	struct graph *graph;

	for (size_t i = graphs->graphs.count; i--;)
		if (graphs->graphs.item[i]->handle == handle && !graphs->graphs.item[i]->destroyed)
			return graphs->graphs.item[i];
	graph = sl_memory_must(calloc(1, sizeof(*graph)));
	graph->handle = handle;
	*SL_PUSH(&graphs->graphs) = graph;
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
}

/* Called when neither the graph nor an executable of it is left. */
static void end_graph(struct sl_model *model, struct graph *graph)
{
	struct sl_graphs *graphs = model->graphs;
	SL_VECTOR(uint64_t) gone = {0};

	SL_TABLE_EACH(&model->pointers, live)
	{
		if (live->owner != graph->handle || live->flags & SL_LIVE_LAUNCHED ||
		    model->sites.item[live->site].kind != SL_KIND_graph)
			continue;
		*SL_PUSH(&gone) = live->address;
	}
	for (size_t i = 0; i < gone.count; i++)
		end_block(model, gone.item[i]);
	free(gone.item);
	for (size_t i = 0; i < graphs->graphs.count; i++)
		if (graphs->graphs.item[i] == graph) {
			graphs->graphs.item[i] = graphs->graphs.item[--graphs->graphs.count];
			break;
		}
	free(graph->frees.item);
	free(graph->allocs.item);
	free(graph);
}

static struct exec *exec_of(struct sl_graphs *graphs, uint64_t handle)
{
	for (size_t i = graphs->execs.count; i--;)
		if (graphs->execs.item[i].handle == handle)
			return &graphs->execs.item[i];
	return NULL;
}

static void instantiate(struct sl_graphs *graphs, const struct sl_event *event)
{
	struct graph *graph = graph_of(graphs, event->object);

	*SL_PUSH(&graphs->execs) = (struct exec){event->address, graph};
	graph->execs++;
}

static void destroy_exec(struct sl_model *model, uint64_t handle)
{
	struct exec *exec = exec_of(model->graphs, handle);
	struct graph *graph = exec ? exec->graph : NULL;

	if (!exec)
		return;
	*exec = model->graphs->execs.item[--model->graphs->execs.count];
	if (!--graph->execs && graph->destroyed)
		end_graph(model, graph);
}

static struct sl_live *begin_block(struct sl_model *model, const struct sl_live *made)
{
	struct sl_live *live = sl_table_add(&model->pointers, made->address);

	*live = *made;
	live->time_ns = model->now_ns;
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
	begin_block(model, &made);
}

static bool frees(const struct graph *graph, uint64_t address)
{
	for (size_t i = 0; i < graph->frees.count; i++)
		if (graph->frees.item[i] == address)
			return true;
	return false;
}

static void launch(struct sl_model *model, const struct graph *graph)
{
	for (size_t i = 0; i < graph->allocs.count; i++) {
		const struct sl_live *made = &graph->allocs.item[i];
		struct sl_live *live = sl_table_find(&model->pointers, made->address);

		if (live && live->flags & SL_LIVE_LAUNCHED) { /* left allocated by the launch before */
			end_block(model, made->address);
			live = NULL;
		}
		if (!live && frees(graph, made->address))
			continue; /* in a later launch the block begins and ends within it */
		if (!live)
			live = begin_block(model, made);
		live->flags |= SL_LIVE_LAUNCHED;
	}
	for (size_t i = 0; i < graph->frees.count; i++)
		end_block(model, graph->frees.item[i]);
}

void sl_graphs_free_node(struct sl_model *model, uint64_t handle, uint64_t address)
{
	struct graph *graph = graph_of(model->graphs, handle);

	*SL_PUSH(&graph->frees) = address;
}

void sl_graphs_apply(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct graph *graph;
	struct exec *exec;

	if (event->result) {
		if (item->hook->verb == SL_VERB_GRAPH_ALLOC || item->hook->verb == SL_VERB_ALLOC)
			sl_ledger_row(model, SL_KIND_graph, event->device)->failed_allocations++;
		return;
	}
	switch (item->hook->verb) {
	case SL_VERB_ALLOC: /* captured, as in FREE below */
	case SL_VERB_GRAPH_ALLOC:
		add_node(model, item);
		break;
	case SL_VERB_FREE:
	case SL_VERB_GRAPH_FREE:
		sl_graphs_free_node(model, event->object, event->address);
		break;
	case SL_VERB_GRAPH_INSTANTIATE:
		instantiate(model->graphs, event);
		break;
	case SL_VERB_GRAPH_LAUNCH:
		exec = exec_of(model->graphs, event->address);
		if (exec)
			launch(model, exec->graph);
		break;
	case SL_VERB_GRAPH_DESTROY:
		graph = graph_of(model->graphs, event->address);
		graph->destroyed = true;
		if (!graph->execs)
			end_graph(model, graph);
		break;
	case SL_VERB_EXEC_DESTROY:
		destroy_exec(model, event->address);
		break;
	default:
		break; /* a graph becomes known with its first node */
	}
}
