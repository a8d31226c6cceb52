/* SPDX-License-Identifier: MIT */
/*
 * Private pools of CUDA graphs: the allocator of PyTorch takes segments for them while a graph is captured.  Graphs share a pool
 * where the program names it.
 */

#include "analyzer/model/replay/replay.h"

/* The pool with that name, or the graph's own where it has none; NULL: it is new. */
static struct sl_graph_pool *pool_of(struct sl_model *model, const struct sl_event *event, bool named)
{
	for (size_t i = model->graph_pools.count; i--;) {
		struct sl_graph_pool *pool = &model->graph_pools.item[i];

		if (named ? pool->name[0] == event->bytes && pool->name[1] == event->extra : pool->graph == event->address)
			return pool;
	}
	return NULL;
}

void sl_captures_apply(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	bool named = event->bytes || event->extra;
	struct sl_graph_pool *pool;

	if (strstr(item->hook->name, "CUDAGraph::capture_begin")) {
		pool = named ? pool_of(model, event, true) : NULL;
		if (!pool) {
			pool = SL_PUSH(&model->graph_pools);
			*pool = (struct sl_graph_pool){event->address, {event->bytes, event->extra}, 0};
		}
		model->graph_pool = (uint32_t)(pool - model->graph_pools.item);
	} else if (strstr(item->hook->name, "CUDAGraph::pool") && (pool = pool_of(model, event, false))) {
		pool->name[0] = event->bytes, pool->name[1] = event->extra;
	}
}

void sl_captures_segment(struct sl_model *model, struct sl_live *segment, const struct sl_event *event, struct sl_torch *torch)
{
	segment->flags |= SL_LIVE_GRAPH;
	torch->graph_reserved_bytes += segment->bytes;
	if (segment->bytes > torch->graph_most_bytes) {
		torch->graph_most_bytes = segment->bytes;
		torch->graph_stack = sl_stack_of(event);
	}
	if (!model->graph_pools.count || sl_table_find(&model->graph_segments, segment->address))
		return;
	torch->graph_pools += !model->graph_pools.item[model->graph_pool].segments++;
	sl_table_add(&model->graph_segments, segment->address)->owner = model->graph_pool;
}

void sl_captures_release(struct sl_model *model, const struct sl_live *segment, struct sl_torch *torch)
{
	struct sl_live *known = sl_table_find(&model->graph_segments, segment->address);

	torch->graph_reserved_bytes -= segment->bytes;
	if (!known)
		return;
	torch->graph_pools -= !--model->graph_pools.item[known->owner].segments;
	sl_table_remove(&model->graph_segments, known);
}
