/* SPDX-License-Identifier: MIT */
/*
 * Merges all threads by time.  A heap holds each thread's feed (feed.c).  A thread whose first frame is in the future is not
 * opened yet.
 */

#include "analyzer/base/heap.h"
#include "analyzer/base/memory.h"
#include "analyzer/trace/inner.h"
#include "common/tracefile.h"

struct sl_order {
	struct sl_trace *trace;
	struct sl_feed *feeds;
	size_t feed_count;
	struct sl_feed **heap;
	size_t heap_count;
	struct sl_feed *given;	 /* the feed whose first event the last call returned */
	unsigned count;		 /* items asked for so far */
	struct sl_mapped mapped; /* at the item given last */
	size_t arrived;		 /* arrivals before it */
	struct sl_item item;	 /* its copy, and the event's, where libraries came and went */
	struct sl_event event;
};

#define ASK_EVERY 16384 /* items between two looks at the clock */

/* At equal times records (thread 0) follow events: first an out-of-memory error, then its context. */
static bool earlier(const struct sl_feed *a, const struct sl_feed *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	if (a->after != b->after)
		return !a->after;
	return a->thread - 1 < b->thread - 1;
}

static struct sl_feed *feed_of(struct sl_order *order, struct sl_idmap *ids, uint32_t thread)
{
	uint32_t at = sl_idmap_claim(ids, thread, order->feed_count);

	if (at == order->feed_count) {
		order->feeds = sl_memory_must(realloc(order->feeds, ++order->feed_count * sizeof(*order->feeds)));
		order->feeds[at] = (struct sl_feed){.trace = order->trace, .thread = thread, .item.thread = thread, .after = true};
	}
	return &order->feeds[at];
}

static void collect(struct sl_order *order)
{
	const struct sl_trace *trace = order->trace;
	struct sl_idmap ids = {0};

	for (unsigned f = 0; f < trace->file_count; f++)
		for (size_t i = 0; i < trace->files[f].count; i++) {
			struct sl_zstd_frame *frame = &trace->files[f].frame[i];

			if (!frame->compressed || frame->no_record)
				continue;
			sl_feed_add_frame(feed_of(order, &ids, frame->kind == SL_FRAME_BLOCK ? frame->thread : 0), frame);
		}
	feed_of(order, &ids, 0);
	for (unsigned i = 0; trace->ring.path && i < trace->ring.segments; i++)
		if (sl_ring_thread(&trace->ring, i))
			feed_of(order, &ids, sl_ring_thread(&trace->ring, i));
	for (size_t i = 0; i < trace->folded.threads.count; i++) {
		uint32_t at = sl_idmap_get(&ids, trace->folded.threads.item[i].thread, UINT32_MAX);

		if (at != UINT32_MAX && order->feeds[at].file_next < trace->folded.threads.item[i].next)
			order->feeds[at].file_next = trace->folded.threads.item[i].next;
	}
	sl_idmap_free(&ids);
}

/* Continue where the passes before ended. */
static void resume(struct sl_order *order)
{
	struct sl_cursor *cursor = order->trace->cursor;

	for (size_t i = 0; i < order->feed_count; i++)
		sl_cursor_of(cursor, order->feeds[i].thread);
	for (size_t i = 0; i < order->feed_count; i++) {
		struct sl_feed *feed = &order->feeds[i];

		feed->taken = sl_cursor_of(cursor, feed->thread); /* its address does not change from here on */
		feed->number = feed->taken->base;
		if (feed->file_next < feed->taken->next)
			feed->file_next = feed->taken->next;
		feed->taken->next = feed->file_next;
	}
}

/* Records in memory: from the ring, or left by the pass before. */
static void collect_records(struct sl_order *order, struct sl_feed *feed)
{
	struct sl_trace *trace = order->trace;
	struct sl_cursor *cursor = trace->cursor;

	if (cursor && cursor->begun) {
		feed->ring_records.item = cursor->records.item;
		feed->ring_records.count = cursor->records.count;
		feed->ring_records.capacity = cursor->records.capacity;
		cursor->records.item = NULL;
		cursor->records.count = cursor->records.capacity = 0;
	} else if (trace->ring.path) {
		sl_ring_defs(&trace->ring, trace->log_next, sl_feed_add_record, feed);
	}
}

struct sl_order *sl_order_new(struct sl_trace *trace)
{
	struct sl_order *order = sl_memory_must(calloc(1, sizeof(*order)));

	order->trace = trace;
	for (unsigned i = 0; i < trace->file_count; i++)
		sl_frames_wake(&trace->files[i]);
	if (trace->cursor) /* each pass has its own ring */
		sl_budget_begin(&trace->budget, trace->disk_bytes);
	sl_budget_resume();
	collect(order);
	if (trace->cursor)
		resume(order);
	order->heap = calloc(order->feed_count, sizeof(*order->heap));
	for (size_t i = 0; i < order->feed_count; i++) {
		struct sl_feed *feed = &order->feeds[i];

		msgpack_zone_init(&feed->zone, 1024);
		if (feed->thread)
			sl_feed_sort(feed);
		else
			collect_records(order, feed);
		if ((feed->thread && feed->frame_count) || sl_feed_advance(feed))
			order->heap[order->heap_count++] = feed;
	}
	for (size_t i = order->heap_count / 2; i--;)
		SL_HEAP_SINK(order->heap, order->heap_count, i, earlier);
	return order;
}

/*
 * Where libraries came and went, the caller's address means what was there at the time of the event.  The item is a copy, because
 * a feed's own event is used again.
 */
static SL_NOINLINE const struct sl_item *place_caller(struct sl_order *order, const struct sl_item *item)
{
	const struct sl_defs *defs = &order->trace->defs;
	struct sl_event *event = &order->event;

	*event = *item->event;
	for (; order->arrived < defs->arrivals.count && defs->arrivals.item[order->arrived].ns <= event->time_ns; order->arrived++)
		sl_mapped_put(&order->mapped, &defs->arrivals.item[order->arrived].place);
	if (event->caller)
		event->caller = sl_mapped_address(&order->mapped, event->caller - 1) + 1;
	order->item = *item;
	order->item.event = event;
	return &order->item;
}

const struct sl_item *sl_order_next(struct sl_order *order)
{
	struct sl_feed *feed = NULL;

	while (order->heap_count && !(feed = order->heap[0])->ready) {
		if (!feed->thread && !feed->record_taken && order->trace->cursor)
			sl_trace_keep_record(order->trace, &feed->item);
		if (!sl_feed_advance(feed)) {
			sl_feed_retire(feed);
			order->heap[0] = order->heap[--order->heap_count];
		}
		if (order->heap_count > 1)
			SL_HEAP_SINK(order->heap, order->heap_count, 0, earlier);
	}
	if (order->heap_count && !(++order->count % ASK_EVERY) && sl_trace_spent(order->trace, sl_feed_frame(feed)))
		order->heap_count = 0;
	if (!order->heap_count)
		return NULL;
	feed->ready = feed->record_taken = false;
	order->given = feed;
	if (SL_UNLIKELY(order->trace->defs.moved || order->trace->defs.left) && feed->item.kind == SL_ITEM_EVENT)
		return place_caller(order, &feed->item);
	return &feed->item;
}

void sl_order_free(struct sl_order *order)
{
	if (!order)
		return;
	for (size_t i = 0; i < order->feed_count; i++)
		sl_feed_free(&order->feeds[i]);
	free(order->feeds);
	free(order->heap);
	free(order->mapped.list.item);
	free(order);
}

void sl_order_take(struct sl_order *order)
{
	struct sl_feed *feed = order->given;

	if (feed->thread)
		sl_cursor_take(feed->taken, feed->item.number);
	else
		feed->record_taken = true;
}

static void keep_records(struct sl_order *order, struct sl_feed *feed)
{
	bool ended = true, there = !(order->given == feed && feed->record_taken);

	for (size_t i = 0; i < order->heap_count; i++)
		ended = ended && order->heap[i] != feed;
	for (; !ended && (there || sl_feed_advance(feed)); there = false)
		sl_trace_keep_record(order->trace, &feed->item);
	for (size_t i = 0; i < feed->frame_count; i++)
		feed->frames[i]->compressed = 0;
}

void sl_order_suspend(struct sl_order *order)
{
	struct sl_trace *trace = order->trace;

	for (size_t i = 0; i < order->feed_count; i++)
		if (order->feeds[i].thread)
			sl_feed_drop_taken(&order->feeds[i]);
		else
			keep_records(order, &order->feeds[i]);
	if (!trace->cursor->begun && trace->ring.path)
		trace->log_next = sl_ring_defs_settled(&trace->ring, trace->log_next, NULL, NULL);
	trace->cursor->begun = true;
	for (unsigned f = 0; f < trace->file_count; f++)
		sl_frames_forget(&trace->files[f]);
	sl_order_free(order);
	sl_ring_drop(&trace->ring); /* megabytes for each process; the next pass reads it anew */
}

uint64_t sl_item_time(const struct sl_item *item)
{
	return item->kind == SL_ITEM_EVENT    ? item->event->time_ns
	       : item->kind == SL_ITEM_SAMPLE ? item->sample.time_ns
					      : item->oom.time_ns;
}

int64_t sl_item_step(const struct sl_item *item, const struct sl_defs *defs)
{
	const struct sl_event *event = item->event;
	unsigned verb = item->hook ? item->hook->verb : SL_VERB_CALL;
	const char *text = event->label ? sl_defs_text(defs, event->label) : NULL;

	if (!text || !strchr(text, '#'))
		return -1;
	if (verb == SL_VERB_RANGE_START)
		return (int64_t)(event->extra2 - 1);
	return verb == SL_VERB_RANGE_PUSH || verb == SL_VERB_RANGE_POP || verb == SL_VERB_MARK ? (int64_t)event->extra : -1;
}
