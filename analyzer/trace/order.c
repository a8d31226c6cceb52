/* SPDX-License-Identifier: MIT */
/*
 * Merges all threads by time.  A heap holds each thread's feed.  A thread whose first frame is in the future is not
 * opened yet.
 */
#include "analyzer/base/heap.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/search.h"
#include "analyzer/base/stats.h"
#include "analyzer/trace/inner.h"
#include "common/tracefile.h"

static struct sl_consumed *cursor_of(struct sl_cursor *cursor, uint32_t thread)
{
	uint32_t at = sl_idmap_claim(&cursor->threads, thread, cursor->consumed.count);

	if (at == cursor->consumed.count)
		*SL_PUSH(&cursor->consumed) = (struct sl_consumed){0};
	return &cursor->consumed.item[at];
}

/* Index of the first element of `beyond` that is not below `number`. */
static size_t find(const struct sl_consumed *consumed, uint64_t number)
{
	return SL_FIRST(i, consumed->beyond.count, consumed->beyond.item[i] >= number);
}

static bool cursor_has(const struct sl_consumed *consumed, uint64_t number)
{
	size_t at;

	if (number < consumed->prefix)
		return true;
	at = find(consumed, number);
	return at < consumed->beyond.count && consumed->beyond.item[at] == number;
}

static void cursor_take(struct sl_consumed *consumed, uint64_t number)
{
	uint64_t *beyond;
	size_t at = 0;

	if (number != consumed->prefix) {
		at = find(consumed, number);
		SL_ROOM(&consumed->beyond);
		beyond = consumed->beyond.item;
		memmove(beyond + at + 1, beyond + at, (consumed->beyond.count++ - at) * sizeof(*beyond));
		beyond[at] = number;
		return;
	}
	consumed->prefix++;
	beyond = consumed->beyond.item;
	while (at < consumed->beyond.count && beyond[at] == consumed->prefix) {
		consumed->prefix++;
		at++;
	}
	if (at)
		memmove(beyond, beyond + at, (consumed->beyond.count -= at) * sizeof(*beyond));
}

void sl_cursor_free(struct sl_cursor *cursor)
{
	if (!cursor)
		return;
	for (size_t i = 0; i < cursor->consumed.count; i++)
		free(cursor->consumed.item[i].beyond.item);
	free(cursor->consumed.item);
	free(cursor->records.item);
	free(cursor->ring);
	sl_idmap_free(&cursor->threads);
	free(cursor);
}

static bool stamped_before(const struct sl_hook *hook)
{
	return hook && hook->stamped_before;
}

static uint64_t begin_of(const struct sl_event *event, const struct sl_hook *hook)
{
	bool at_begin = stamped_before(hook) || event->flags & SL_FLAG_in_flight || event->duration_ns > event->time_ns;

	return at_begin ? event->time_ns : event->time_ns - event->duration_ns;
}

/* ---- events of one thread, in slot order */

struct sl_waiting {
	struct sl_event event;
	const struct sl_hook *hook;
	uint64_t number;
};

/*
 * What one thread of a trace contributes to the order over all threads: its events, first from its frames and then from
 * the ring.  They are stored in slot order, by the begin of their calls.  A call stamped after it returned is stored before the
 * calls made inside it, so an event waits in a heap until the thread has begun a later one.  The feed of thread 0 gives records:
 * samples and contexts of out-of-memory errors.
 *
 * One thread of ours; the trace outlives its feeds.
 */
struct sl_feed {
	struct sl_trace *trace;
	uint32_t thread;  /* 0: records in definition frames */
	uint64_t time_ns; /* of the first event; while the feed is closed, when its first frame begins */
	bool after;	  /* the first event is stamped after its call, and comes second at equal times */
	bool ready;	  /* item is what comes next; else it is to be read, or was given out */

	struct sl_consumed *consumed; /* by earlier passes; NULL: none */
	uint64_t number;	      /* number of the event that is read next */

	struct sl_zstd_frame **frames;
	size_t frame_count, frame_at, frame_capacity;
	struct sl_inflate inflate;
	msgpack_zone zone;
	struct sl_block block;
	bool in_block, in_ring;
	struct sl_ring_walk walk;
	uint64_t file_next; /* slots below it are in the file */

	/*
	 * events that were read and not yet given out, as a heap: all calls of a thread may have begun before the first of them
	 * ends
	 */
	struct sl_waiting *waiting;
	size_t waiting_count, capacity;
	bool exhausted;
	struct sl_event slot_event;

	/*
	 * the first event or record.  The event is the first of `waiting`; it is still in its block where none waits and none can
	 * come before it
	 */
	struct sl_item item;

	/* records */
	bool record_taken;
	size_t map_at;
	SL_VECTOR(struct sl_item) ring_records;
	size_t ring_record_at;
};

/* A frame of the thread cannot be opened: its events are not waited for. */
static void lose(struct sl_feed *feed, const struct sl_zstd_frame *frame)
{
	feed->trace->damage.lost_events += frame->count;
	for (uint32_t i = 0; feed->consumed && i < frame->count; i++)
		if (!cursor_has(feed->consumed, feed->number + i))
			cursor_take(feed->consumed, feed->number + i);
	feed->number += frame->count;
}

static SL_NOINLINE bool next_frame(struct sl_feed *feed)
{
	while (feed->frame_at < feed->frame_count && !sl_trace_spent(feed->trace, feed->frames[feed->frame_at])) {
		const struct sl_zstd_frame *frame = feed->frames[feed->frame_at++];
		const struct sl_frames *file = &feed->trace->files[frame->file];
		const char *wrong;

		if (!sl_frame_read(&feed->inflate, file, frame, &feed->trace->damage)) {
			lose(feed, frame);
			continue;
		}
		wrong = sl_block_decode(&feed->block, feed->inflate.out, feed->inflate.bytes);
		if (!wrong) {
			feed->trace->unknown_columns += feed->block.unknown_columns;
			feed->in_block = true;
			return true;
		}
		sl_damage_add(&feed->trace->damage, file->path, (int64_t)frame->offset, "block: %s", wrong);
		lose(feed, frame);
	}
	return false;
}

static SL_NOINLINE struct sl_event *next_slot(struct sl_feed *feed, const struct sl_hook **hook)
{
	const struct sl_slot *slot, *second;

	if (!feed->trace->ring.path)
		return NULL;
	if (!feed->in_ring) {
		sl_ring_walk(&feed->walk, &feed->trace->ring, feed->thread, feed->file_next);
		feed->in_ring = true;
	}
	slot = sl_ring_next(&feed->walk, &second);
	if (!slot)
		return NULL;
	*hook = sl_header_hook(&feed->trace->header, sl_slot_api(slot));
	sl_slot_decode(&feed->slot_event, slot, second, *hook ? (*hook)->verb : SL_VERB_CALL);
	return &feed->slot_event;
}

static struct sl_event *read_event(struct sl_feed *feed, const struct sl_hook **hook)
{
	struct sl_event *event;

	for (;;) {
		if (feed->in_block && (event = sl_block_next(&feed->block))) {
			*hook = sl_header_hook(&feed->trace->header, event->api);
			return event;
		}
		feed->in_block = false;
		if (!next_frame(feed))
			break;
	}
	return next_slot(feed, hook);
}

/* The feed owns the event read last.  A device number beyond every table is changed to none, the file's kind to ours. */
static const struct sl_event *next_event(struct sl_feed *feed, const struct sl_hook **hook)
{
	struct sl_event *event = read_event(feed, hook);
	struct sl_header *header = &feed->trace->header;

	if (!event)
		return NULL;
	if (SL_UNLIKELY(event->device < -1 || event->device >= SL_DEVICES_MAX))
		event->device = -1;
	if (SL_UNLIKELY(!header->same_kinds || event->kind >= SL_KIND_COUNT)) {
		header->unknown_kinds += event->kind >= header->kind_count;
		event->kind = header->kinds[event->kind & 255];
	}
	return event;
}

static bool sooner(const struct sl_waiting *a, const struct sl_waiting *b)
{
	return a->event.time_ns != b->event.time_ns ? a->event.time_ns < b->event.time_ns : a->number < b->number;
}

static SL_NOINLINE void push(struct sl_feed *feed, const struct sl_event *event, const struct sl_hook *hook, uint64_t number)
{
	const struct sl_waiting new = {*event, hook, number};
	size_t at;

	feed->waiting = sl_arena_grow(feed->waiting, &feed->capacity, feed->waiting_count, sizeof(*feed->waiting));
	for (at = feed->waiting_count++; at && sooner(&new, &feed->waiting[(at - 1) / 2]); at = (at - 1) / 2)
		feed->waiting[at] = feed->waiting[(at - 1) / 2];
	feed->waiting[at] = new;
}

static SL_NOINLINE void drop_first(struct sl_feed *feed)
{
	const struct sl_waiting *last = &feed->waiting[--feed->waiting_count];
	size_t at = 0;

	for (size_t child; (child = at * 2 + 1) < feed->waiting_count; at = child) {
		if (child + 1 < feed->waiting_count && sooner(&feed->waiting[child + 1], &feed->waiting[child]))
			child++;
		if (!sooner(&feed->waiting[child], last))
			break;
		feed->waiting[at] = feed->waiting[child];
	}
	feed->waiting[at] = *last;
}

/* True: the thread's next call, as far as it can be seen without reading on, began later; so no event can come before. */
static bool is_next(const struct sl_feed *feed, uint64_t time_ns)
{
	const struct sl_event *after = feed->in_block ? sl_block_peek(&feed->block) : NULL;

	return after && begin_of(after, sl_header_hook(&feed->trace->header, after->api)) >= time_ns;
}

static bool found(struct sl_feed *feed, const struct sl_event *event, const struct sl_hook *hook, uint64_t number)
{
	feed->item.event = event;
	feed->item.hook = hook;
	feed->item.number = number;
	feed->time_ns = event->time_ns;
	feed->after = !stamped_before(hook);
	return true;
}

/* Finds the thread's earliest event; false at the end. */
static bool fill(struct sl_feed *feed)
{
	if (feed->waiting_count && feed->item.event == &feed->waiting[0].event)
		drop_first(feed);
	while (!feed->exhausted) {
		const struct sl_hook *hook = NULL;
		const struct sl_event *event;
		uint64_t begin, number;

		if (feed->waiting_count && is_next(feed, feed->waiting[0].event.time_ns))
			break;
		event = next_event(feed, &hook);
		if (!event) {
			feed->exhausted = true;
			break;
		}
		number = feed->number++;
		if (feed->consumed && cursor_has(feed->consumed, number))
			continue;
		begin = begin_of(event, hook);
		if (!feed->waiting_count && (event->time_ns <= begin || is_next(feed, event->time_ns)))
			return found(feed, event, hook, number);
		push(feed, event, hook, number);
		if (feed->waiting[0].event.time_ns <= begin)
			break;
	}
	return feed->waiting_count && found(feed, &feed->waiting[0].event, feed->waiting[0].hook, feed->waiting[0].number);
}

/* ---- records: samples and OOM contexts inside definition frames, then in the ring's log */

/* No record comes before the one that was found last. */
static bool found_record(struct sl_feed *feed)
{
	uint64_t time_ns = sl_item_time(&feed->item);

	feed->time_ns = time_ns > feed->time_ns ? time_ns : feed->time_ns;
	return true;
}

static SL_NOINLINE bool next_record(struct sl_feed *feed)
{
	msgpack_object object;

	for (;;) {
		while (feed->in_block && feed->map_at < feed->inflate.bytes) {
			msgpack_zone_clear(&feed->zone);
			if (!sl_object_parse(&object, &feed->zone, feed->inflate.out, feed->inflate.bytes, &feed->map_at))
				break;
			if (sl_record_read(&feed->item, &object))
				return found_record(feed);
		}
		feed->in_block = false;
		if (feed->frame_at == feed->frame_count)
			break;
		feed->in_block = sl_frame_read(&feed->inflate, &feed->trace->files[feed->frames[feed->frame_at]->file],
					       feed->frames[feed->frame_at], NULL);
		feed->frame_at++;
		feed->map_at = 0;
	}
	if (feed->ring_record_at == feed->ring_records.count)
		return false;
	feed->item = feed->ring_records.item[feed->ring_record_at++];
	return found_record(feed);
}

/* Adds a record of the ring's definition log, to be given after those in frames; `data` is the feed. */
static void add_record(void *data, const uint8_t *bytes, size_t size)
{
	struct sl_feed *feed = data;
	msgpack_object object;
	struct sl_item item;
	size_t at = 0;

	if (sl_object_parse(&object, &feed->zone, bytes, size, &at) && sl_record_read(&item, &object)) {
		SL_ROOM(&feed->ring_records);
		/* `source` points into the ring, which lives longer than the order */
		feed->ring_records.item[feed->ring_records.count++] = item;
	}
	msgpack_zone_clear(&feed->zone);
}

/* ---- its frames, and its end */

/* Adds a frame, in any order; its content is not read. */
static void add_frame(struct sl_feed *feed, struct sl_zstd_frame *frame)
{
	feed->frames = sl_arena_grow(feed->frames, &feed->frame_capacity, feed->frame_count, sizeof(*feed->frames));
	feed->frames[feed->frame_count++] = frame;
	if (frame->next > feed->file_next)
		feed->file_next = frame->next;
}

/* Sorted by their first slot, else as they are in the files. */
static int by_slot(const void *a, const void *b)
{
	const struct sl_zstd_frame *x = *(struct sl_zstd_frame *const *)a, *y = *(struct sl_zstd_frame *const *)b;

	return SL_RISING(x->first, y->first) ?: SL_RISING(x->file, y->file) ?: SL_RISING(x->offset, y->offset);
}

/* Leaves out a frame whose slots are already in another frame, so that no event comes twice. */
static void drop_doubles(struct sl_feed *feed)
{
	uint64_t next = feed->consumed ? feed->consumed->dropped : 0;
	size_t kept_count = 0;

	for (size_t i = 0; i < feed->frame_count; i++) {
		struct sl_zstd_frame *frame = feed->frames[i];

		if ((kept_count || next) && frame->first < next) {
			sl_damage_note(&feed->trace->damage, feed->trace->files[frame->file].path,
				       "offset %llu: events that another frame holds already are skipped",
				       (unsigned long long)frame->offset);
			if (feed->consumed)
				frame->compressed = 0;
			continue;
		}
		feed->frames[kept_count++] = frame;
		next = frame->next;
	}
	feed->frame_count = kept_count;
}

/* Nothing comes any more: frees its buffers. */
static void retire_feed(struct sl_feed *feed)
{
	sl_inflate_free(&feed->inflate);
	free(feed->waiting);
	feed->waiting = NULL;
	feed->waiting_count = feed->capacity = 0;
}

/* The frame that the event is in, NULL: the ring. */
static const struct sl_zstd_frame *feed_frame(const struct sl_feed *feed)
{
	return feed->frame_at && !feed->in_ring ? feed->frames[feed->frame_at - 1] : NULL;
}

/* Drops frames whose events have all been taken, for later passes. */
static void drop_taken(struct sl_feed *feed)
{
	for (size_t i = 0; i < feed->frame_count && feed->consumed->base + feed->frames[i]->count <= feed->consumed->prefix; i++) {
		feed->consumed->base += feed->frames[i]->count;
		feed->consumed->dropped = feed->frames[i]->next;
		feed->frames[i]->compressed = 0;
	}
}

/* After the last frame: sorts them and drops those whose content is in another frame.  Not for records. */
static void sort_feed(struct sl_feed *feed)
{
	if (feed->frame_count)
		qsort(feed->frames, feed->frame_count, sizeof(*feed->frames), by_slot);
	drop_doubles(feed);
	if (feed->frame_count)
		feed->time_ns = feed->frames[0]->begin_ns; /* it is opened when its time comes */
}

/* Moves to the next event or record, and sets item, time_ns and after.  False: there is none. */
static bool advance_feed(struct sl_feed *feed)
{
	return feed->ready = feed->thread ? fill(feed) : next_record(feed);
}

static void free_feed(struct sl_feed *feed)
{
	retire_feed(feed);
	free(feed->frames);
	free(feed->ring_records.item);
	msgpack_zone_destroy(&feed->zone);
}

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
			add_frame(feed_of(order, &ids, frame->kind == SL_FRAME_BLOCK ? frame->thread : 0), frame);
		}
	feed_of(order, &ids, 0);
	for (unsigned i = 0; trace->ring.path && i < trace->ring.segments; i++)
		if (sl_ring_thread(&trace->ring, i))
			feed_of(order, &ids, sl_ring_thread(&trace->ring, i));
	for (size_t i = 0; i < trace->folded.threads.count; i++) {
		const struct sl_totals_thread *totals = &trace->folded.threads.item[i];
		uint32_t at = sl_idmap_get(&ids, totals->thread, UINT32_MAX);

		if (at != UINT32_MAX && order->feeds[at].file_next < totals->next)
			order->feeds[at].file_next = totals->next;
	}
	sl_idmap_free(&ids);
}

/* Continue where the passes before ended. */
static void resume(struct sl_order *order)
{
	struct sl_cursor *cursor = order->trace->cursor;

	for (size_t i = 0; i < order->feed_count; i++)
		cursor_of(cursor, order->feeds[i].thread);
	for (size_t i = 0; i < order->feed_count; i++) {
		struct sl_feed *feed = &order->feeds[i];

		feed->consumed = cursor_of(cursor, feed->thread); /* its address does not change from here on */
		feed->number = feed->consumed->base;
		if (feed->file_next < feed->consumed->next)
			feed->file_next = feed->consumed->next;
		feed->consumed->next = feed->file_next;
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
		sl_ring_defs(&trace->ring, trace->log_next, add_record, feed);
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
			sort_feed(feed);
		else
			collect_records(order, feed);
		if ((feed->thread && feed->frame_count) || advance_feed(feed))
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
		if (!advance_feed(feed)) {
			retire_feed(feed);
			order->heap[0] = order->heap[--order->heap_count];
		}
		if (order->heap_count > 1)
			SL_HEAP_SINK(order->heap, order->heap_count, 0, earlier);
	}
	if (order->heap_count && !(++order->count % ASK_EVERY) && sl_trace_spent(order->trace, feed_frame(feed)))
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
		free_feed(&order->feeds[i]);
	free(order->feeds);
	free(order->heap);
	free(order->mapped.list.item);
	free(order);
}

void sl_order_take(struct sl_order *order)
{
	struct sl_feed *feed = order->given;

	if (feed->thread)
		cursor_take(feed->consumed, feed->item.number);
	else
		feed->record_taken = true;
}

static void keep_records(struct sl_order *order, struct sl_feed *feed)
{
	bool ended = true, there = !(order->given == feed && feed->record_taken);

	for (size_t i = 0; i < order->heap_count; i++)
		ended = ended && order->heap[i] != feed;
	for (; !ended && (there || advance_feed(feed)); there = false)
		sl_trace_keep_record(order->trace, &feed->item);
	for (size_t i = 0; i < feed->frame_count; i++)
		feed->frames[i]->compressed = 0;
}

void sl_order_suspend(struct sl_order *order)
{
	struct sl_trace *trace = order->trace;

	for (size_t i = 0; i < order->feed_count; i++)
		if (order->feeds[i].thread)
			drop_taken(&order->feeds[i]);
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
