/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/inner.h"

#include "analyzer/base/stats.h"

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

/* A frame of the thread cannot be opened: its events are not waited for. */
static void lose(struct sl_feed *feed, const struct sl_zstd_frame *frame)
{
	feed->trace->damage.lost_events += frame->count;
	for (uint32_t i = 0; feed->taken && i < frame->count; i++)
		if (!sl_cursor_has(feed->taken, feed->number + i))
			sl_cursor_take(feed->taken, feed->number + i);
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
		if (feed->taken && sl_cursor_has(feed->taken, number))
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

void sl_feed_add_record(void *data, const uint8_t *bytes, size_t size)
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

void sl_feed_add_frame(struct sl_feed *feed, struct sl_zstd_frame *frame)
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
	uint64_t next = feed->taken ? feed->taken->dropped : 0;
	size_t kept = 0;

	for (size_t i = 0; i < feed->frame_count; i++) {
		struct sl_zstd_frame *frame = feed->frames[i];

		if ((kept || next) && frame->first < next) {
			sl_damage_note(&feed->trace->damage, feed->trace->files[frame->file].path,
				       "offset %llu: events that another frame holds already are skipped",
				       (unsigned long long)frame->offset);
			if (feed->taken)
				frame->compressed = 0;
			continue;
		}
		feed->frames[kept++] = frame;
		next = frame->next;
	}
	feed->frame_count = kept;
}

void sl_feed_retire(struct sl_feed *feed)
{
	sl_inflate_free(&feed->inflate);
	free(feed->waiting);
	feed->waiting = NULL;
	feed->waiting_count = feed->capacity = 0;
}

const struct sl_zstd_frame *sl_feed_frame(const struct sl_feed *feed)
{
	return feed->frame_at && !feed->in_ring ? feed->frames[feed->frame_at - 1] : NULL;
}

void sl_feed_drop_taken(struct sl_feed *feed)
{
	for (size_t i = 0; i < feed->frame_count && feed->taken->base + feed->frames[i]->count <= feed->taken->prefix; i++) {
		feed->taken->base += feed->frames[i]->count;
		feed->taken->dropped = feed->frames[i]->next;
		feed->frames[i]->compressed = 0;
	}
}

void sl_feed_sort(struct sl_feed *feed)
{
	if (feed->frame_count)
		qsort(feed->frames, feed->frame_count, sizeof(*feed->frames), by_slot);
	drop_doubles(feed);
	if (feed->frame_count)
		feed->time_ns = feed->frames[0]->begin_ns; /* it is opened when its time comes */
}

bool sl_feed_advance(struct sl_feed *feed)
{
	return feed->ready = feed->thread ? fill(feed) : next_record(feed);
}

void sl_feed_free(struct sl_feed *feed)
{
	sl_feed_retire(feed);
	free(feed->frames);
	free(feed->ring_records.item);
	msgpack_zone_destroy(&feed->zone);
}
