/* SPDX-License-Identifier: MIT */
/* pytorch-snapshot of a process that is a snapshot itself: the file that is read back has the same figures. */

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/exports/export.h"
#include "analyzer/report/window_facts.h"

/* Bits of `extra` of a segment (analyzer/snapshot/convert.c). */
enum { IS_SMALL = 1, IS_EXPANDABLE = 2 };

static struct sl_live *entry_at(struct sl_table *table, uint64_t address)
{
	return sl_table_find(table, address) ?: sl_table_add(table, address);
}

/* The one piece of an entry that the event and its address tell. */
static struct sl_export_entry entry_of(const struct sl_event *event, uint64_t bytes, uint32_t where, enum sl_export_action action)
{
	return (struct sl_export_entry){.address = event->address,
					.bytes = bytes,
					.stream = event->stream,
					.where = where,
					.device = (int16_t)event->device,
					.action = (uint8_t)action};
}

/* What was there when the window began has no event in a snapshot. */
static bool is_before(const struct sl_merge_process *p, const struct sl_event *event)
{
	return event->time_ns <= p->process.trace->header.monotonic_ns;
}

/* The reader parts a stretch of an expandable segment into pages: the next page joins the newest entry. */
static bool joins(struct sl_export_snapshot *s, const struct sl_export_entry *entry, uint32_t flags)
{
	struct sl_export_entry *last = s->count ? &s->entries[(s->count - 1) % s->cap] : NULL;

	if (!last || !(flags & IS_EXPANDABLE) || flags & IS_SMALL || last->action != entry->action || last->where != entry->where ||
	    last->stream != entry->stream || last->pool != entry->pool || last->device != entry->device ||
	    last->address + last->bytes != entry->address)
		return false;
	last->bytes += entry->bytes;
	return true;
}

static void take_segment(struct sl_export_snapshot *s, struct sl_merge_process *p, const struct sl_event *event, uint32_t where,
			 bool begins)
{
	struct sl_export_window *window = &s->windows[p->index];
	struct sl_live *live =
		begins ? entry_at(&window->segments, event->address) : sl_table_find(&window->segments, event->address);
	enum sl_export_action action;
	struct sl_export_entry entry;

	if (!live)
		return;
	if (begins) {
		live->bytes = event->bytes;
		live->owner = event->stream;
		live->refs = (uint32_t)(event->object ? event->object - 1 : 0);
		live->flags = (uint32_t)event->extra;
		live->site = where;
		live->thread = (uint32_t)event->device;
	}
	if (live->flags & IS_EXPANDABLE)
		action = begins ? SL_EXPORT_SEGMENT_MAP : SL_EXPORT_SEGMENT_UNMAP;
	else
		action = begins ? SL_EXPORT_SEGMENT_ALLOC : SL_EXPORT_SEGMENT_FREE;
	entry = entry_of(event, live->bytes, where, action);
	entry.stream = live->owner;
	entry.pool = (uint16_t)live->refs;
	if (!is_before(p, event) && !joins(s, &entry, live->flags))
		sl_export_note(s, p, entry);
	if (!begins)
		sl_table_remove(&window->segments, live);
}

static void take_block(struct sl_export_snapshot *s, struct sl_merge_process *p, const struct sl_event *event, uint32_t where,
		       enum sl_verb verb)
{
	struct sl_export_window *window = &s->windows[p->index];
	struct sl_live *live = verb == SL_VERB_BLOCK_ALLOC ? entry_at(&window->blocks, event->address)
							   : sl_table_find(&window->blocks, event->address);
	struct sl_export_entry entry;
	bool waited;

	if (!live)
		return;
	waited = live->refs;
	if (verb == SL_VERB_BLOCK_ALLOC) {
		live->bytes = event->bytes - (event->object ? event->object - 1 : 0);
		live->owner = event->bytes;
		live->refs = 0;
		live->site = where;
		live->time_ns = event->stream; /* the frees of a snapshot's trace do not tell it */
		live->flags = (uint32_t)event->context;
	}
	entry = entry_of(event, live->bytes, where, SL_EXPORT_ALLOC);
	entry.stream = live->time_ns;
	entry.pool = (uint16_t)live->flags;
	if (verb != SL_VERB_BLOCK_ALLOC && !waited && !is_before(p, event)) {
		entry.action = SL_EXPORT_FREE_REQUESTED;
		sl_export_note(s, p, entry);
	}
	if (verb == SL_VERB_BLOCK_WAIT) {
		live->refs = 1;
	} else if (verb == SL_VERB_BLOCK_FREE) {
		entry.action = SL_EXPORT_FREE;
		sl_export_note(s, p, entry);
		sl_table_remove(&window->blocks, live);
	} else if (!is_before(p, event)) {
		sl_export_note(s, p, entry);
	}
}

void sl_export_window_take(struct sl_export_snapshot *s, struct sl_merge_process *p)
{
	const struct sl_event *event = p->item->event;
	const struct sl_hook *hook = p->item->hook;
	enum sl_verb verb = hook ? hook->verb : SL_VERB_CALL;
	uint32_t where = sl_merge_where(s->job->merge, p, sl_stack_of(event));

	if (verb == SL_VERB_ALLOC || verb == SL_VERB_FREE)
		take_segment(s, p, event, where, verb == SL_VERB_ALLOC);
	else if (verb == SL_VERB_BLOCK_ALLOC || verb == SL_VERB_BLOCK_FREE || verb == SL_VERB_BLOCK_WAIT)
		take_block(s, p, event, where, verb);
	else if (verb == SL_VERB_BLOCK_OOM)
		sl_export_note(s, p, entry_of(event, event->bytes, where, SL_EXPORT_OOM));
	sl_merge_apply(p);
}

/* ---- writing */

struct lives {
	SL_VECTOR(struct sl_live) list;
};

static int by_address(const void *a, const void *b)
{
	const struct sl_live *x = a, *y = b;

	return SL_RISING(x->address, y->address);
}

static struct lives sorted(const struct sl_table *table)
{
	struct lives lives = {0};

	SL_TABLE_EACH(table, live)
	{
		*SL_PUSH(&lives.list) = *live;
	}
	if (lives.list.count)
		qsort(lives.list.item, lives.list.count, sizeof(*lives.list.item), by_address);
	return lives;
}

static void put_block(struct sl_export_snapshot *s, struct sl_merge_process *p, uint64_t address, uint64_t size,
		      const struct sl_live *block)
{
	sl_pickle_dict(&s->pickle);
	sl_pickle_put_int(&s->pickle, "address", (int64_t)address);
	sl_pickle_put_int(&s->pickle, "size", (int64_t)size);
	sl_pickle_put_int(&s->pickle, "requested_size", block ? (int64_t)block->bytes : 0);
	sl_pickle_put_text(&s->pickle, "state", !block ? "inactive" : block->refs ? "active_pending_free" : "active_allocated");
	if (block)
		sl_export_put_frames(s, p, block->site);
	else
		sl_pickle_put_empty(&s->pickle, "frames");
	sl_pickle_close(&s->pickle);
	sl_pickle_next(&s->pickle);
}

static void put_pool(struct sl_pickle *pickle, const char *key, unsigned pool)
{
	sl_pickle_text(pickle, key);
	sl_pickle_list(pickle);
	sl_pickle_int(pickle, 0);
	sl_pickle_next(pickle);
	sl_pickle_int(pickle, pool);
	sl_pickle_next(pickle);
	sl_pickle_close(pickle);
	sl_pickle_next(pickle);
}

/* `first` is the first block at or behind the segment's begin.  Returns the number of the first one behind its end. */
static size_t put_segment(struct sl_export_snapshot *s, struct sl_merge_process *p, const struct sl_live *segment, uint64_t end,
			  const struct lives *blocks, size_t first)
{
	struct sl_pickle *pickle = &s->pickle;
	uint64_t next = segment->address, used = 0, asked = 0;
	size_t last = first;

	for (; last < blocks->list.count && blocks->list.item[last].address < end; last++) {
		used += blocks->list.item[last].owner;
		asked += blocks->list.item[last].bytes;
	}
	sl_pickle_dict(pickle);
	sl_pickle_put_int(pickle, "device", sl_export_device(s, p, (int)segment->thread));
	sl_pickle_put_int(pickle, "address", (int64_t)segment->address);
	sl_pickle_put_int(pickle, "total_size", (int64_t)(end - segment->address));
	sl_pickle_put_int(pickle, "stream", (int64_t)segment->owner);
	sl_pickle_put_text(pickle, "segment_type", segment->flags & IS_SMALL ? "small" : "large");
	put_pool(pickle, "segment_pool_id", segment->refs);
	sl_pickle_put_int(pickle, "allocated_size", (int64_t)used);
	sl_pickle_put_int(pickle, "active_size", (int64_t)used);
	sl_pickle_put_int(pickle, "requested_size", (int64_t)asked);
	sl_pickle_text(pickle, "is_expandable");
	sl_pickle_bool(pickle, segment->flags & IS_EXPANDABLE);
	sl_pickle_next(pickle);
	sl_export_put_frames(s, p, segment->site);
	sl_pickle_text(pickle, "blocks");
	sl_pickle_list(pickle);
	for (size_t i = first; i < last; i++) {
		const struct sl_live *block = &blocks->list.item[i];

		if (block->address > next)
			put_block(s, p, next, block->address - next, NULL);
		put_block(s, p, block->address, block->owner, block);
		next = block->address + block->owner;
	}
	if (next < end)
		put_block(s, p, next, end - next, NULL);
	sl_pickle_close(pickle);
	sl_pickle_next(pickle);
	sl_pickle_close(pickle);
	sl_pickle_next(pickle);
	return last;
}

void sl_export_window_put(struct sl_export_snapshot *s, struct sl_merge_process *p)
{
	struct lives segments = sorted(&s->windows[p->index].segments), blocks = sorted(&s->windows[p->index].blocks);
	size_t block = 0, behind;

	for (size_t i = 0; i < segments.list.count; i = behind) {
		const struct sl_live *first = &segments.list.item[i];
		uint64_t end = first->address + first->bytes;

		/* pages of an expandable segment that lie side by side are one, as PyTorch tells them */
		for (behind = i + 1; behind < segments.list.count && first->flags & IS_EXPANDABLE; behind++) {
			const struct sl_live *page = &segments.list.item[behind];

			if (page->address != end || page->flags != first->flags || page->owner != first->owner ||
			    page->refs != first->refs || page->thread != first->thread)
				break;
			end += page->bytes;
		}
		while (block < blocks.list.count && blocks.list.item[block].address < first->address)
			block++;
		block = put_segment(s, p, first, end, &blocks, block);
	}
	free(segments.list.item);
	free(blocks.list.item);
}

/* The oldest release that writes such a file, of 2. */
static unsigned release_of(const struct sl_merge_process *p)
{
	unsigned least = 0;

	sscanf(sl_header_setting(&p->process.trace->header, "snapshot_releases"), "%u", &least);
	return least;
}

static void put_none(struct sl_pickle *pickle, const char *key)
{
	sl_pickle_put_text(pickle, key, "");
}

void sl_export_window_keys(struct sl_export_snapshot *s, const struct sl_merge_process *p, const struct sl_export_entry *entry)
{
	unsigned release = release_of(p);

	if (sl_header_is_timed(&p->process.trace->header))
		sl_pickle_put_int(&s->pickle, "time_us", (int64_t)(entry->unix_ns / 1000));
	if (release >= 8)
		put_none(&s->pickle, "compile_context");
	if (release >= 9)
		put_none(&s->pickle, "user_metadata");
	if (release >= 11)
		put_pool(&s->pickle, "pool_id", entry->pool);
}

void sl_export_window_settings(struct sl_export_snapshot *s, const struct sl_merge_process *p)
{
	const struct sl_header *header = &p->process.trace->header;
	const char *conf = NULL;

	for (unsigned i = 0; i < header->environment_count; i++) /* the reader puts no other there */
		conf = header->environment[i].value;
	if (release_of(p) >= 3 || conf) {
		sl_pickle_text(&s->pickle, "allocator_settings");
		sl_pickle_dict(&s->pickle);
		sl_pickle_put_text(&s->pickle, "PYTORCH_CUDA_ALLOC_CONF", conf ?: "");
		sl_pickle_text(&s->pickle, "expandable_segments");
		sl_pickle_bool(&s->pickle, conf && strstr(conf, "expandable_segments:True"));
		sl_pickle_next(&s->pickle);
		sl_pickle_close(&s->pickle);
		sl_pickle_next(&s->pickle);
	}
	if (release_of(p) >= 5)
		sl_pickle_put_empty(&s->pickle, "external_annotations");
}
