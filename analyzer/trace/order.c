/* SPDX-License-Identifier: MIT */
/*
 * Events of one thread come in slot order: by the time their calls began.  A call stamped after it returned lies
 * before the calls made inside it; so an event waits in the thread's buffer until the thread has begun a later
 * one.  Over threads a heap holds the head of each; a thread whose first frame lies in the future is not opened.
 */
#include <stdlib.h>

#include "analyzer/base/arena.h"
#include "analyzer/trace/cursor.h"
#include "analyzer/base/memory.h"
#include "analyzer/trace/trace.h"
#include "common/block.h"
#include "common/tracefile.h"

struct waiting {
	struct sl_event event;
	const struct sl_hook *hook;
	uint64_t number;
};

struct stream {
	uint32_t thread;  /* 0: records of the definition frames */
	uint64_t time_ns; /* of the head; of a stream not yet opened the time its first frame begins */
	bool after;	  /* the head is stamped after its call: loses ties */
	bool opened;	  /* head is valid */

	struct sl_taken *taken; /* by earlier passes; NULL: there are none */
	uint64_t number;	/* of the next event that is read */

	struct sl_zstd_frame **frames;
	size_t frame_count, frame_at, frame_capacity;
	struct sl_inflate inflate;
	msgpack_zone zone;
	struct sl_block block;
	bool in_block, in_ring;
	struct sl_ring_walk walk;
	uint64_t file_next; /* slots below it are in the file */

	/* events read and not yet given out, a heap: a thread's calls may all have begun before the first of them ends */
	struct waiting *waiting;
	size_t waiting_count, capacity;
	bool exhausted;
	struct sl_event slot_event;

	/* the head where nothing waits and nothing can come before it: not copied */
	const struct sl_event *direct;
	const struct sl_hook *direct_hook;
	uint64_t direct_number;

	/* records */
	bool record_taken;
	size_t map_at;
	struct sl_item record;
	SL_VECTOR(struct sl_item) ring_records;
	size_t ring_record_at;
};

struct sl_order {
	struct sl_trace *trace;
	struct stream *streams;
	size_t stream_count;
	struct stream **heap;
	size_t heap_count;
	struct stream *given; /* whose head was given out by the last call */
	struct sl_item item;
	struct sl_event translated;
	unsigned count; /* of what was asked for */
};

#define ASK_EVERY 16384 /* events, between two looks at the clock */

static bool stamped_before(const struct sl_hook *hook)
{
	return hook && sl_event_verbs[hook->verb].stamped_before;
}

static uint64_t begin_of(const struct sl_event *event, const struct sl_hook *hook)
{
	bool at_begin = stamped_before(hook) || event->flags & SL_FLAG_in_flight || event->duration_ns > event->time_ns;

	return at_begin ? event->time_ns : event->time_ns - event->duration_ns;
}

/* ---- events of one thread, in slot order */

/* Its frame does not open: the events are not waited for. */
static void lose(struct sl_order *order, struct stream *s, const struct sl_zstd_frame *frame)
{
	order->trace->damage.lost_events += frame->count;
	for (uint32_t i = 0; s->taken && i < frame->count; i++)
		if (!sl_cursor_has(s->taken, s->number + i))
			sl_cursor_take(s->taken, s->number + i);
	s->number += frame->count;
}

static bool next_frame(struct sl_order *order, struct stream *s)
{
	while (s->frame_at < s->frame_count && !sl_trace_spent(order->trace, s->frames[s->frame_at])) {
		const struct sl_zstd_frame *frame = s->frames[s->frame_at++];
		const struct sl_frames *file = &order->trace->files[frame->file];
		const char *wrong;

		if (!sl_frame_read(&s->inflate, file, frame, &order->trace->damage)) {
			lose(order, s, frame);
			continue;
		}
		wrong = sl_block_decode(&s->block, s->inflate.out, s->inflate.bytes);
		if (!wrong) {
			order->trace->unknown_columns += s->block.unknown_columns;
			s->in_block = true;
			return true;
		}
		sl_damage_add(&order->trace->damage, file->path, (int64_t)frame->offset, "block: %s", wrong);
		lose(order, s, frame);
	}
	return false;
}

static const struct sl_event *next_slot(struct sl_order *order, struct stream *s, const struct sl_hook **hook)
{
	const struct sl_slot *slot, *second;

	if (!order->trace->ring.path)
		return NULL;
	if (!s->in_ring) {
		sl_ring_walk(&s->walk, &order->trace->ring, s->thread, s->file_next);
		s->in_ring = true;
	}
	slot = sl_ring_next(&s->walk, &second);
	if (!slot)
		return NULL;
	*hook = sl_header_hook(&order->trace->header, sl_slot_api(slot));
	sl_slot_decode(&s->slot_event, slot, second, *hook ? (*hook)->verb : SL_VERB_CALL);
	return &s->slot_event;
}

static const struct sl_event *read_event(struct sl_order *order, struct stream *s, const struct sl_hook **hook)
{
	const struct sl_event *event;

	for (;;) {
		if (s->in_block && (event = sl_block_next(&s->block))) {
			*hook = sl_header_hook(&order->trace->header, event->api);
			return event;
		}
		s->in_block = false;
		if (!next_frame(order, s))
			break;
	}
	return next_slot(order, s, hook);
}

/* The event that was read last is the stream's own: a device that no table has room for is none for anybody. */
static const struct sl_event *next_event(struct sl_order *order, struct stream *s, const struct sl_hook **hook)
{
	struct sl_event *event = (struct sl_event *)read_event(order, s, hook);

	if (event && SL_UNLIKELY(event->device < -1 || event->device >= SL_DEVICES_MAX))
		event->device = -1;
	return event;
}

static bool sooner(const struct waiting *a, const struct waiting *b)
{
	return a->event.time_ns != b->event.time_ns ? a->event.time_ns < b->event.time_ns : a->number < b->number;
}

static void push(struct stream *s, const struct sl_event *event, const struct sl_hook *hook, uint64_t number)
{
	const struct waiting new = {*event, hook, number};
	size_t at;

	s->waiting = sl_arena_grow(s->waiting, &s->capacity, s->waiting_count, sizeof(*s->waiting));
	for (at = s->waiting_count++; at && sooner(&new, &s->waiting[(at - 1) / 2]); at = (at - 1) / 2)
		s->waiting[at] = s->waiting[(at - 1) / 2];
	s->waiting[at] = new;
}

static void drop_first(struct stream *s)
{
	const struct waiting *last = &s->waiting[--s->waiting_count];
	size_t at = 0;

	for (size_t child; (child = at * 2 + 1) < s->waiting_count; at = child) {
		if (child + 1 < s->waiting_count && sooner(&s->waiting[child + 1], &s->waiting[child]))
			child++;
		if (!sooner(&s->waiting[child], last))
			break;
		s->waiting[at] = s->waiting[child];
	}
	s->waiting[at] = *last;
}

/* The thread's next call, where that can be seen without reading on, had not begun by then: so no event comes before. */
static bool is_next(const struct sl_order *order, const struct stream *s, uint64_t time_ns)
{
	const struct sl_event *after = s->in_block ? sl_block_peek(&s->block) : NULL;

	return after && begin_of(after, sl_header_hook(&order->trace->header, after->api)) >= time_ns;
}

/* Make the earliest event of the thread `direct` or waiting[0]; false at the end. */
static bool fill(struct sl_order *order, struct stream *s)
{
	while (!s->exhausted) {
		const struct sl_hook *hook = NULL;
		const struct sl_event *event;
		uint64_t begin, number;

		if (s->waiting_count && is_next(order, s, s->waiting[0].event.time_ns))
			break;
		event = next_event(order, s, &hook);
		if (!event) {
			s->exhausted = true;
			break;
		}
		number = s->number++;
		if (s->taken && sl_cursor_has(s->taken, number))
			continue;
		begin = begin_of(event, hook);
		if (!s->waiting_count && (event->time_ns <= begin || is_next(order, s, event->time_ns))) {
			s->direct = event;
			s->direct_hook = hook;
			s->direct_number = number;
			s->time_ns = event->time_ns;
			s->after = !stamped_before(hook);
			return true;
		}
		push(s, event, hook, number);
		if (s->waiting[0].event.time_ns <= begin)
			break;
	}
	if (!s->waiting_count)
		return false;
	s->time_ns = s->waiting[0].event.time_ns;
	s->after = !stamped_before(s->waiting[0].hook);
	return true;
}

/* ---- records: samples and OOM contexts inside definition frames, then in the ring's log */

static bool next_record(struct sl_order *order, struct stream *s)
{
	uint64_t before = s->time_ns;
	msgpack_object object;

	for (;;) {
		while (s->in_block && s->map_at < s->inflate.bytes) {
			bool read;

			msgpack_zone_clear(&s->zone);
			if (!sl_object_parse(&object, &s->zone, s->inflate.out, s->inflate.bytes, &s->map_at))
				break;
			read = sl_record_read(&s->record, &object);
			if (!read)
				continue;
			s->time_ns = s->record.kind == SL_ITEM_SAMPLE ? s->record.sample.time_ns : s->record.oom.time_ns;
			if (s->time_ns < before)
				s->time_ns = before;
			return true;
		}
		s->in_block = false;
		if (s->frame_at == s->frame_count)
			break;
		s->in_block = sl_frame_read(&s->inflate, &order->trace->files[s->frames[s->frame_at]->file], s->frames[s->frame_at],
					    NULL);
		s->frame_at++;
		s->map_at = 0;
	}
	if (s->ring_record_at == s->ring_records.count)
		return false;
	s->record = s->ring_records.item[s->ring_record_at++];
	s->time_ns = s->record.kind == SL_ITEM_SAMPLE ? s->record.sample.time_ns : s->record.oom.time_ns;
	if (s->time_ns < before)
		s->time_ns = before;
	return true;
}

static void keep_ring_record(void *data, const uint8_t *bytes, size_t size)
{
	struct stream *s = data;
	msgpack_object object;
	struct sl_item item;
	size_t at = 0;

	if (sl_object_parse(&object, &s->zone, bytes, size, &at) && sl_record_read(&item, &object)) {
		SL_ROOM(&s->ring_records);
		/* `source` points into the ring, which outlives the order */
		s->ring_records.item[s->ring_records.count++] = item;
	}
	msgpack_zone_clear(&s->zone);
}

/* ---- the heap */

/* Records (thread 0) come behind events of the same time: an out-of-memory error before what was found out about it. */
static bool earlier(const struct stream *a, const struct stream *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	if (a->after != b->after)
		return !a->after;
	return a->thread - 1 < b->thread - 1;
}

static void sift_down(struct sl_order *order, size_t at)
{
	struct stream **heap = order->heap, *s = heap[at];

	for (size_t child; (child = at * 2 + 1) < order->heap_count; at = child) {
		if (child + 1 < order->heap_count && earlier(heap[child + 1], heap[child]))
			child++;
		if (!earlier(heap[child], s))
			break;
		heap[at] = heap[child];
	}
	heap[at] = s;
}

static bool advance(struct sl_order *order, struct stream *s)
{
	s->opened = true;
	return s->thread ? fill(order, s) : next_record(order, s);
}

static struct stream *stream_of(struct sl_order *order, struct sl_idmap *ids, uint32_t thread)
{
	uint32_t at = sl_idmap_get(ids, thread, UINT32_MAX);

	if (at == UINT32_MAX) {
		at = (uint32_t)order->stream_count++;
		order->streams = sl_memory_must(realloc(order->streams, order->stream_count * sizeof(*order->streams)));
		order->streams[at] = (struct stream){.thread = thread, .after = true};
		sl_idmap_set(ids, thread, at);
	}
	return &order->streams[at];
}

static void add_frame(struct stream *s, struct sl_zstd_frame *frame)
{
	s->frames = sl_arena_grow(s->frames, &s->frame_capacity, s->frame_count, sizeof(*s->frames));
	s->frames[s->frame_count++] = frame;
	if (frame->next > s->file_next)
		s->file_next = frame->next;
}

/* By their first slot, else as they lie in the files. */
static int by_slot(const void *a, const void *b)
{
	const struct sl_zstd_frame *x = *(struct sl_zstd_frame *const *)a, *y = *(struct sl_zstd_frame *const *)b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* A frame whose slots another frame holds already is left out: never twice. */
static void drop_doubles(struct sl_order *order, struct stream *s)
{
	uint64_t next = s->taken ? s->taken->dropped : 0;
	size_t kept = 0;

	for (size_t i = 0; i < s->frame_count; i++) {
		struct sl_zstd_frame *frame = s->frames[i];

		if ((kept || next) && frame->first < next) {
			sl_damage_note(&order->trace->damage, order->trace->files[frame->file].path,
				       "offset %llu: events that another frame holds already are skipped",
				       (unsigned long long)frame->offset);
			if (s->taken)
				frame->compressed = 0;
			continue;
		}
		s->frames[kept++] = frame;
		next = frame->next;
	}
	s->frame_count = kept;
}

static void collect(struct sl_order *order)
{
	const struct sl_trace *trace = order->trace;
	struct sl_idmap ids = {0};

	for (unsigned f = 0; f < trace->file_count; f++)
		for (size_t i = 0; i < trace->files[f].count; i++) {
			struct sl_zstd_frame *frame = &trace->files[f].frame[i];

			if (!frame->compressed)
				continue;
			add_frame(stream_of(order, &ids, frame->kind == SL_FRAME_BLOCK ? frame->thread : 0), frame);
		}
	stream_of(order, &ids, 0);
	for (unsigned i = 0; trace->ring.path && i < trace->ring.segments; i++)
		if (sl_ring_thread(&trace->ring, i))
			stream_of(order, &ids, sl_ring_thread(&trace->ring, i));
	for (size_t i = 0; i < trace->folded.threads.count; i++) {
		uint32_t at = sl_idmap_get(&ids, trace->folded.threads.item[i].thread, UINT32_MAX);

		if (at != UINT32_MAX && order->streams[at].file_next < trace->folded.threads.item[i].next)
			order->streams[at].file_next = trace->folded.threads.item[i].next;
	}
	sl_idmap_free(&ids);
}

/* Go on where the passes before ended. */
static void resume(struct sl_order *order)
{
	struct sl_cursor *cursor = order->trace->cursor;

	for (size_t i = 0; i < order->stream_count; i++)
		sl_cursor_of(cursor, order->streams[i].thread);
	for (size_t i = 0; i < order->stream_count; i++) {
		struct stream *s = &order->streams[i];

		s->taken = sl_cursor_of(cursor, s->thread); /* stays where it is from here on */
		s->number = s->taken->base;
		if (s->file_next < s->taken->next)
			s->file_next = s->taken->next;
		s->taken->next = s->file_next;
	}
}

/* Records that are in memory: of the ring, or left by the pass before. */
static void collect_records(struct sl_order *order, struct stream *s)
{
	struct sl_trace *trace = order->trace;
	struct sl_cursor *cursor = trace->cursor;

	if (cursor && cursor->begun) {
		s->ring_records.item = cursor->records.item;
		s->ring_records.count = cursor->records.count;
		s->ring_records.capacity = cursor->records.capacity;
		cursor->records.item = NULL;
		cursor->records.count = cursor->records.capacity = 0;
	} else if (trace->ring.path) {
		sl_ring_defs(&trace->ring, trace->log_next, keep_ring_record, s);
	}
}

struct sl_order *sl_order_new(struct sl_trace *trace)
{
	struct sl_order *order = sl_memory_must(calloc(1, sizeof(*order)));

	order->trace = trace;
	if (trace->cursor) /* each pass has its own */
		sl_budget_begin(&trace->budget, trace->disk_bytes);
	sl_budget_resume();
	collect(order);
	if (trace->cursor)
		resume(order);
	order->heap = calloc(order->stream_count, sizeof(*order->heap));
	for (size_t i = 0; i < order->stream_count; i++) {
		struct stream *s = &order->streams[i];

		msgpack_zone_init(&s->zone, 1024);
		if (s->thread && s->frame_count)
			qsort(s->frames, s->frame_count, sizeof(*s->frames), by_slot);
		if (s->thread)
			drop_doubles(order, s);
		else
			collect_records(order, s);
		if (s->thread && s->frame_count)
			s->time_ns = s->frames[0]->begin_ns; /* opened when its time comes */
		else if (!advance(order, s))
			continue;
		order->heap[order->heap_count++] = s;
	}
	for (size_t i = order->heap_count / 2; i--;)
		sift_down(order, i);
	return order;
}

static void retire(struct stream *s)
{
	sl_inflate_free(&s->inflate);
	free(s->waiting);
	s->waiting = NULL;
	s->waiting_count = s->capacity = 0;
}

static const struct sl_item *give(struct sl_order *order, struct stream *s)
{
	order->given = s;
	s->record_taken = false;
	if (!s->thread)
		return &s->record;
	order->item.kind = SL_ITEM_EVENT;
	order->item.thread = s->thread;
	order->item.number = s->direct ? s->direct_number : s->waiting[0].number;
	order->item.hook = s->direct ? s->direct_hook : s->waiting[0].hook;
	order->item.event = s->direct ? s->direct : &s->waiting[0].event;
	if (SL_UNLIKELY(!order->trace->header.same_kinds || order->item.event->kind >= SL_KIND_COUNT)) {
		order->translated = *order->item.event;
		order->translated.kind = order->trace->header.kinds[order->translated.kind & 255];
		order->item.event = &order->translated;
	}
	return &order->item;
}

/* The frame that a stream is in, NULL: its ring. */
static const struct sl_zstd_frame *frame_of(const struct stream *s)
{
	return s->frame_at && !s->in_ring ? s->frames[s->frame_at - 1] : NULL;
}

const struct sl_item *sl_order_next(struct sl_order *order)
{
	for (;;) {
		struct stream *s = order->heap_count ? order->heap[0] : NULL;

		if (s && !(++order->count % ASK_EVERY) && sl_trace_spent(order->trace, frame_of(s)))
			order->heap_count = 0;
		if (!order->heap_count)
			return NULL;
		if (order->given == s || !s->opened) {
			if (order->given == s && !s->thread && !s->record_taken && order->trace->cursor)
				sl_trace_keep_record(order->trace, &s->record);
			if (order->given == s && s->direct)
				s->direct = NULL;
			else if (order->given == s && s->thread)
				drop_first(s);
			order->given = NULL;
			if (!advance(order, s)) {
				retire(s);
				order->heap[0] = order->heap[--order->heap_count];
				if (order->heap_count)
					sift_down(order, 0);
				continue;
			}
			sift_down(order, 0);
			if (order->heap[0] != s)
				continue;
		}
		return give(order, order->heap[0]);
	}
}

void sl_order_free(struct sl_order *order)
{
	if (!order)
		return;
	for (size_t i = 0; i < order->stream_count; i++) {
		struct stream *s = &order->streams[i];

		retire(s);
		free(s->frames);
		free(s->ring_records.item);
		msgpack_zone_destroy(&s->zone);
	}
	free(order->streams);
	free(order->heap);
	free(order);
}

void sl_order_take(struct sl_order *order)
{
	struct stream *s = order->given;

	if (s->thread)
		sl_cursor_take(s->taken, order->item.number);
	else
		s->record_taken = true;
}

/* Frames whose events are all taken are not kept. */
static void drop_taken(struct stream *s)
{
	for (size_t i = 0; i < s->frame_count && s->taken->base + s->frames[i]->count <= s->taken->prefix; i++) {
		s->taken->base += s->frames[i]->count;
		s->taken->dropped = s->frames[i]->next;
		s->frames[i]->compressed = 0;
	}
}

static void keep_records(struct sl_order *order, struct stream *s)
{
	bool ended = true, there = !(order->given == s && s->record_taken);

	for (size_t i = 0; i < order->heap_count; i++)
		ended = ended && order->heap[i] != s;
	for (; !ended && (there || next_record(order, s)); there = false)
		sl_trace_keep_record(order->trace, &s->record);
	for (size_t i = 0; i < s->frame_count; i++)
		s->frames[i]->compressed = 0;
}

void sl_order_suspend(struct sl_order *order)
{
	struct sl_trace *trace = order->trace;

	for (size_t i = 0; i < order->stream_count; i++)
		if (order->streams[i].thread)
			drop_taken(&order->streams[i]);
		else
			keep_records(order, &order->streams[i]);
	if (!trace->cursor->begun && trace->ring.path)
		trace->log_next = sl_ring_defs_settled(&trace->ring, trace->log_next, NULL, NULL);
	trace->cursor->begun = true;
	for (unsigned f = 0; f < trace->file_count; f++)
		sl_frames_forget(&trace->files[f]);
	sl_order_free(order);
	sl_ring_drop(&trace->ring); /* megabytes of each process, which the next pass reads anew */
}
