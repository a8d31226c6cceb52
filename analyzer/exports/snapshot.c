/* SPDX-License-Identifier: MIT */
/*
 * Longer than other files: events of every library become those of one allocator, and one writer puts them.
 *
 * pytorch-snapshot: the pickle that pytorch.org/memory_viz and torch.cuda._memory_viz read, made from any program.  Driver-level
 * allocations become segments.  PyTorch's blocks lie inside its segments; every other segment is one block.  The category is the
 * library that asked.  Like PyTorch's own recorder it keeps the newest events, up to a cap.
 *
 * A snapshot of one process has its device numbers.  Devices of several processes are numbered consecutively.
 */
#include <limits.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/exports/export.h"
#include "analyzer/report/dry.h"
#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"

#define EVENTS_MAX 100000

static const char *const actions[] = {"segment_alloc", "segment_free",	 "segment_map", "segment_unmap",
				      "alloc",	       "free_completed", "oom",		"free_requested"};

#define POOLED	     (SL_EXPORT_DRIVER | SL_LIVE_TORCH) /* flags of a segment */
#define DEVICES_SAID 256
#define SEEN	     UINT_MAX /* marks a device without a number */

static unsigned *number_of(const struct sl_export_snapshot *s, unsigned process, int device)
{
	return &s->number[(size_t)process * SL_DEVICES_MAX + (unsigned)device];
}

unsigned sl_export_device(const struct sl_export_snapshot *s, const struct sl_merge_process *p, int device)
{
	return *number_of(s, p->index, device);
}

static unsigned device_of(const struct sl_export_snapshot *s, uint64_t entry)
{
	const struct sl_export_entry *at = &s->entries[entry % s->cap];

	return *number_of(s, at->process, at->device);
}

void sl_export_note(struct sl_export_snapshot *s, const struct sl_merge_process *p, struct sl_export_entry entry)
{
	if (entry.device < 0 || entry.device >= SL_DEVICES_MAX)
		return;
	entry.unix_ns = p->unix_ns;
	entry.process = p->index;
	s->entries[s->count++ % s->cap] = entry;
}

static void note(struct sl_export_snapshot *s, const struct sl_merge_process *p, enum sl_export_action action, int64_t device,
		 uint64_t address, uint64_t bytes, uint64_t stream, uint32_t where, unsigned flags)
{
	if (device < 0 || device >= SL_DEVICES_MAX)
		return;
	sl_export_note(s, p,
		       (struct sl_export_entry){.address = address,
						.bytes = bytes,
						.stream = stream,
						.where = where,
						.device = (int16_t)device,
						.action = (uint8_t)action,
						.flags = (uint8_t)flags});
}

static uint32_t where_of_site(struct sl_export_snapshot *s, struct sl_merge_process *p, uint32_t site)
{
	const struct sl_site *at = &p->process.model->sites.item[site];

	return sl_merge_where(s->job->merge, p, at->stack);
}

static bool is_segment_kind(unsigned kind)
{
	return kind == SL_KIND_device || kind == SL_KIND_pool || kind == SL_KIND_managed || kind == SL_KIND_graph;
}

/* The device of memory that has an address; -1: it is none of a device, or of another kind. */
static int device_of_live(const struct sl_model *model, const struct sl_live *live)
{
	const struct sl_site *site = live->site == SL_NO_SITE ? NULL : &model->sites.item[live->site];

	return site && (is_segment_kind(site->kind) || site->kind == SL_KIND_vmm) ? site->device : -1;
}

static void note_begin(struct sl_export_snapshot *s, struct sl_merge_process *p, const struct sl_live *live, bool mapped,
		       uint64_t stream, uint32_t where)
{
	int device = device_of_live(p->process.model, live);

	note(s, p, mapped ? SL_EXPORT_SEGMENT_MAP : SL_EXPORT_SEGMENT_ALLOC, device, live->address, live->bytes, stream, where,
	     live->flags | SL_EXPORT_DRIVER);
	note(s, p, SL_EXPORT_ALLOC, device, live->address, live->bytes, stream, where, live->flags | SL_EXPORT_DRIVER);
}

/* Records that the blocks of a pool end which begin in the range. */
static void note_blocks_end(struct sl_export_snapshot *s, struct sl_merge_process *p, struct sl_extent range, uint32_t where)
{
	for (const struct sl_live *block; (block = sl_table_next(&p->process.model->blocks, &range));)
		note(s, p, SL_EXPORT_FREE, p->process.model->sites.item[block->site].device, block->address, block->bytes, 0, where,
		     block->flags);
}

/* Records memory that is about to end, and the blocks of a pool that end with it. */
static void note_end(struct sl_export_snapshot *s, struct sl_merge_process *p, const struct sl_live *live, bool mapped,
		     uint32_t where)
{
	int device = device_of_live(p->process.model, live);

	if (!(live->flags & SL_LIVE_TORCH))
		note(s, p, SL_EXPORT_FREE, device, live->address, live->bytes, 0, where, live->flags | SL_EXPORT_DRIVER);
	note_blocks_end(s, p, (struct sl_extent){.address = live->address, .bytes = live->bytes}, where);
	note(s, p, mapped ? SL_EXPORT_SEGMENT_UNMAP : SL_EXPORT_SEGMENT_FREE, device, live->address, live->bytes, 0, where,
	     live->flags | SL_EXPORT_DRIVER);
}

/* Applies the item, and records the blocks that end with their context. */
static void apply_with_owners(struct sl_export_snapshot *s, struct sl_merge_process *p)
{
	struct sl_ends ends = {0};

	p->process.model->ends = &ends;
	sl_merge_apply(p);
	p->process.model->ends = NULL;
	for (size_t i = 0; i < ends.all.count; i++)
		note_end(s, p, &ends.all.item[i], false, where_of_site(s, p, ends.all.item[i].site));
	free(ends.all.item);
}

/* Records a block that was handed out, if it has its place: results of JAX may wait for it (analyzer/model/replay/torch.c). */
static void note_placed(struct sl_export_snapshot *s, struct sl_merge_process *p, const struct sl_event *event)
{
	const struct sl_live *block = event->address ? sl_table_find(&p->process.model->blocks, event->address) : NULL;

	if (block)
		note(s, p, SL_EXPORT_ALLOC, event->device, event->address, event->bytes, event->stream,
		     sl_merge_where(s->job->merge, p, sl_stack_of(event)), block->flags & SL_LIVE_POOL);
}

static void take_event(struct sl_export_snapshot *s, struct sl_merge_process *p)
{
	const struct sl_event *event = p->item->event;
	const struct sl_hook *hook = p->item->hook;
	struct sl_model *model = p->process.model;
	enum sl_verb verb = hook ? hook->verb : SL_VERB_CALL;
	uint32_t where = sl_merge_where(s->job->merge, p, sl_stack_of(event));
	const struct sl_live *live = event->address ? sl_table_find(&model->pointers, event->address) : NULL;
	const struct sl_live *block = event->address ? sl_table_find(&model->blocks, event->address) : NULL;
	bool fine = event->result == 0 && !(event->flags & (SL_FLAG_in_flight | SL_FLAG_abandoned));
	struct sl_extent range = {.address = event->address, .bytes = event->bytes};
	size_t waited = model->waiting.count;
	struct sl_handed_out *before = waited ? sl_memory_must(malloc(waited * sizeof(*before))) : NULL;

	if (waited)
		memcpy(before, model->waiting.item, waited * sizeof(*before));
	if (hook && hook->oom && event->result == hook->oom)
		note(s, p, SL_EXPORT_OOM, event->device, 0, event->bytes, event->stream, where, SL_EXPORT_DRIVER);
	else if (verb == SL_VERB_BLOCK_OOM)
		note(s, p, SL_EXPORT_OOM, event->device, 0, event->bytes, 0, where, 0);
	else if (verb == SL_VERB_BLOCK_FREE && block)
		note(s, p, SL_EXPORT_FREE, model->sites.item[block->site].device, event->address, block->bytes, event->stream,
		     where, block->flags);
	else if (verb == SL_VERB_BLOCK_DROP)
		note_blocks_end(s, p, range, where);
	else if (verb == SL_VERB_FREE && fine && live)
		note_end(s, p, live, false, where);
	else if (verb == SL_VERB_UNMAP && fine)
		while ((live = sl_table_next(sl_vmm_mappings(model->vmm), &range)))
			note_end(s, p, live, true, where);
	else if (verb == SL_VERB_CONTEXT_DESTROY || verb == SL_VERB_PRIMARY_RELEASE || verb == SL_VERB_DEVICE_RESET ||
		 verb == SL_VERB_POOL_DESTROY || verb == SL_VERB_GRAPH_DESTROY || verb == SL_VERB_EXEC_DESTROY)
		apply_with_owners(s, p);
	sl_merge_apply(p);
	for (size_t i = 0; i < waited; i++)
		note_placed(s, p, &before[i].event);
	free(before);
	if (verb == SL_VERB_BLOCK_ALLOC)
		note_placed(s, p, event);
	if (event->address && fine && (verb == SL_VERB_ALLOC || verb == SL_VERB_MAP)) {
		live = sl_table_find(verb == SL_VERB_MAP ? sl_vmm_mappings(model->vmm) : &model->pointers, event->address);
		if (live)
			note_begin(s, p, live, verb == SL_VERB_MAP, event->stream, where);
	}
}

/* ---- writing */

static void put_frame(struct sl_pickle *pickle, const struct sl_stack_frame *frame)
{
	char place[SL_STACKS_NAME_BYTES];

	if (!frame->function)
		sl_stacks_describe(place, sizeof(place), frame);
	sl_pickle_dict(pickle);
	sl_pickle_put_text(pickle, "name", frame->function ? frame->function : place);
	sl_pickle_put_text(pickle, "filename", frame->file ? frame->file : frame->module ? frame->module : "??");
	sl_pickle_put_int(pickle, "line", frame->line);
	sl_pickle_close(pickle);
}

/* The bytes that the device had free at an out-of-memory, once all events are taken; SL_UNKNOWN. */
static uint64_t export_window_free_at(const struct sl_merge_process *p, const struct sl_export_entry *entry)
{
	const struct sl_model *model = p->process.model;

	/* PyTorch reports its error after the driver's refusals, which are one error in the model */
	for (size_t i = model->ooms.count; i--;)
		if (sl_process_unix(&p->process, model->ooms.item[i].time_ns) <= entry->unix_ns &&
		    model->ooms.item[i].device == entry->device && model->ooms.item[i].free_bytes != SL_UNKNOWN)
			return model->ooms.item[i].free_bytes;
	return SL_UNKNOWN;
}

/* How many of the frames are the program's: the reader adds one for what has no stack, or was made before the window. */
static unsigned export_window_frames(const struct sl_stack_frame *frames, unsigned count)
{
	const char *last = count ? frames[count - 1].function : NULL;

	if (!last || (strcmp(last, "made before the window") && strcmp(last, "no stack in the file")))
		return count;
	count--; /* where a size is all that is left, it is no frame either */
	return count == 1 && frames[0].function &&
			       (!strncmp(frames[0].function, "blocks of ", 10) || !strcmp(frames[0].function, "other sizes"))
		       ? 0
		       : count;
}

static void export_window_free(struct sl_export_snapshot *s)
{
	for (unsigned i = 0; i < s->job->merge->count; i++) {
		sl_table_free(&s->windows[i].segments);
		sl_table_free(&s->windows[i].blocks);
	}
	free(s->windows);
}

/* Writes the frames of a place once and refers to them afterwards. */
void sl_export_put_frames(struct sl_export_snapshot *s, struct sl_merge_process *p, uint32_t index)
{
	uint64_t key = (uint64_t)p->index << 32 | index;
	uint32_t memo = sl_idmap_get(&s->memos, key, UINT32_MAX);
	const struct sl_where *where = &p->wheres.item[index];
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count;

	sl_pickle_text(&s->pickle, "frames");
	if (memo != UINT32_MAX) {
		sl_pickle_recall(&s->pickle, memo);
	} else {
		count = sl_process_stack(&p->process, frames, where->stack);
		count = sl_stacks_fold(frames, count);
		if (!p->process.model->recording.follows_process)
			count = export_window_frames(frames, count);
		sl_pickle_list(&s->pickle);
		for (unsigned i = 0; i < count; i++) {
			put_frame(&s->pickle, &frames[i]);
			sl_pickle_next(&s->pickle);
		}
		sl_pickle_close(&s->pickle);
		sl_idmap_set(&s->memos, key, sl_pickle_remember(&s->pickle));
	}
	sl_pickle_next(&s->pickle);
}

static void put_block(struct sl_export_snapshot *s, struct sl_merge_process *p, uint64_t address, uint64_t bytes, bool active,
		      uint32_t where)
{
	sl_pickle_dict(&s->pickle);
	sl_pickle_put_int(&s->pickle, "address", (int64_t)address);
	sl_pickle_put_int(&s->pickle, "size", (int64_t)bytes);
	sl_pickle_put_int(&s->pickle, "requested_size", active ? (int64_t)bytes : 0);
	sl_pickle_put_text(&s->pickle, "state", active ? "active_allocated" : "inactive");
	sl_export_put_frames(s, p, where);
	sl_pickle_close(&s->pickle);
	sl_pickle_next(&s->pickle);
}

static int by_address(const void *a, const void *b)
{
	const struct sl_live *x = a, *y = b;

	return SL_RISING(x->address, y->address);
}

struct lives {
	SL_VECTOR(struct sl_live) list;
};

static void collect(struct lives *lives, const struct sl_table *table)
{
	SL_TABLE_EACH(table, live)
	{
		*SL_PUSH(&lives->list) = *live;
	}
	if (lives->list.count)
		qsort(lives->list.item, lives->list.count, sizeof(*lives->list.item), by_address);
}

/* Writes the segment's blocks and the gaps between them.  Returns the bytes in blocks. */
static uint64_t put_tiles(struct sl_export_snapshot *s, struct sl_merge_process *p, const struct sl_live *segment,
			  const struct lives *blocks, size_t *at, bool write)
{
	uint64_t end = segment->address + segment->bytes, next = segment->address, used = 0;
	uint32_t where = where_of_site(s, p, segment->site);
	size_t i = *at;

	while (i < blocks->list.count && blocks->list.item[i].address < segment->address)
		i++;
	for (; i < blocks->list.count && blocks->list.item[i].address < end; i++) {
		const struct sl_live *block = &blocks->list.item[i];
		uint64_t bytes = block->bytes < end - block->address ? block->bytes : end - block->address;

		if (block->address < next)
			continue; /* overlaps the previous block: the trace is damaged */
		if (write && block->address > next)
			put_block(s, p, next, block->address - next, false, where);
		if (write)
			put_block(s, p, block->address, bytes, true, where_of_site(s, p, block->site));
		used += bytes;
		next = block->address + bytes;
	}
	if (write && next < end)
		put_block(s, p, next, end - next, false, where);
	if (write)
		*at = i;
	return used;
}

/* True: no memory of PyTorch's allocator.  The reader has to know (analyzer/snapshot/read.c). */
static bool is_outside(unsigned flags)
{
	return flags & SL_EXPORT_DRIVER ? (flags & (SL_LIVE_TORCH | SL_LIVE_POOL)) != SL_LIVE_TORCH : flags & SL_LIVE_POOL;
}

static void put_outside(struct sl_pickle *pickle)
{
	sl_pickle_text(pickle, "stormlog_outside");
	sl_pickle_bool(pickle, true);
	sl_pickle_next(pickle);
}

static void put_segment(struct sl_export_snapshot *s, struct sl_merge_process *p, const struct sl_live *segment,
			const struct lives *blocks, size_t *at, bool mapped)
{
	const struct sl_site *site = &p->process.model->sites.item[segment->site];
	bool torch = segment->flags & SL_LIVE_TORCH;
	uint64_t used = torch ? put_tiles(s, p, segment, blocks, at, false) : segment->bytes;
	struct sl_pickle *pickle = &s->pickle;

	sl_pickle_dict(pickle);
	sl_pickle_put_int(pickle, "device", *number_of(s, p->index, site->device));
	sl_pickle_put_int(pickle, "address", (int64_t)segment->address);
	sl_pickle_put_int(pickle, "total_size", (int64_t)segment->bytes);
	sl_pickle_put_int(pickle, "stream", 0);
	sl_pickle_put_text(pickle, "segment_type", segment->bytes <= 2u << 20 ? "small" : "large");
	sl_pickle_text(pickle, "segment_pool_id");
	sl_pickle_list(pickle);
	sl_pickle_int(pickle, 0);
	sl_pickle_next(pickle);
	sl_pickle_int(pickle, 0);
	sl_pickle_next(pickle);
	sl_pickle_close(pickle);
	sl_pickle_next(pickle);
	if (is_outside(segment->flags | SL_EXPORT_DRIVER))
		put_outside(pickle);
	sl_pickle_put_int(pickle, "allocated_size", (int64_t)used);
	sl_pickle_put_int(pickle, "active_size", (int64_t)used);
	sl_pickle_put_int(pickle, "requested_size", (int64_t)used);
	sl_pickle_text(pickle, "is_expandable");
	sl_pickle_bool(pickle, mapped);
	sl_pickle_next(pickle);
	sl_export_put_frames(s, p, where_of_site(s, p, segment->site));
	sl_pickle_text(pickle, "blocks");
	sl_pickle_list(pickle);
	if (torch)
		put_tiles(s, p, segment, blocks, at, true);
	else
		put_block(s, p, segment->address, segment->bytes, true, where_of_site(s, p, segment->site));
	sl_pickle_close(pickle);
	sl_pickle_next(pickle);
	sl_pickle_close(pickle);
	sl_pickle_next(pickle);
}

/* Physical memory has an address only where it is mapped.  The mapping gets the site of the memory. */
static void collect_mappings(struct lives *segments, const struct sl_model *model)
{
	size_t count;
	const struct sl_physical *physical = sl_vmm_physical(model->vmm, &count);
	size_t kept_count = 0;

	collect(segments, sl_vmm_mappings(model->vmm));
	for (size_t i = 0; i < segments->list.count; i++) {
		struct sl_live live = segments->list.item[i];

		if (live.owner >= count || physical[live.owner].site == SL_NO_SITE)
			continue;
		live.site = physical[live.owner].site;
		segments->list.item[kept_count++] = live;
	}
	segments->list.count = kept_count;
}

static void put_segments(struct sl_export_snapshot *s, struct sl_merge_process *p)
{
	struct lives segments = {0}, blocks = {0}, mappings = {0};
	size_t at = 0, mapped_at = 0;

	if (!p->process.model->recording.follows_process) {
		sl_export_window_put(s, p);
		return;
	}
	collect(&segments, &p->process.model->pointers);
	collect(&blocks, &p->process.model->blocks);
	collect_mappings(&mappings, p->process.model);
	for (size_t i = 0; i < segments.list.count; i++) {
		const struct sl_site *site = &p->process.model->sites.item[segments.list.item[i].site];

		if (site->device >= 0 && is_segment_kind(site->kind))
			put_segment(s, p, &segments.list.item[i], &blocks, &at, false);
	}
	for (size_t i = 0; i < mappings.list.count; i++)
		if (p->process.model->sites.item[mappings.list.item[i].site].device >= 0)
			put_segment(s, p, &mappings.list.item[i], &blocks, &mapped_at, true);
	free(segments.list.item);
	free(blocks.list.item);
	free(mappings.list.item);
}

/* True: PyTorch's allocator was refused.  It tells the error itself. */
static bool is_told(const struct sl_merge_process *p, const struct sl_export_entry *entry)
{
	const struct sl_device_state *device = p->process.model->devices[entry->device + 1];

	return entry->action == SL_EXPORT_OOM && entry->flags & SL_EXPORT_DRIVER && device && device->torch.used &&
	       strstr(p->wheres.item[entry->where].library, "c10_");
}

static void put_entry(struct sl_export_snapshot *s, const struct sl_export_entry *entry)
{
	struct sl_merge_process *p = &s->job->merge->processes[entry->process];
	struct sl_pickle *pickle = &s->pickle;

	if (is_told(p, entry) || (entry->action == SL_EXPORT_ALLOC && (entry->flags & POOLED) == POOLED))
		return;
	sl_pickle_dict(pickle);
	sl_pickle_put_text(pickle, "action", actions[entry->action]);
	if (entry->action != SL_EXPORT_OOM)
		sl_pickle_put_int(pickle, "addr", (int64_t)entry->address);
	else if (export_window_free_at(p, entry) != SL_UNKNOWN)
		sl_pickle_put_int(pickle, "device_free", (int64_t)export_window_free_at(p, entry));
	sl_pickle_put_int(pickle, "size", (int64_t)entry->bytes);
	sl_pickle_put_int(pickle, "stream", (int64_t)entry->stream);
	if (p->process.model->recording.follows_process)
		sl_pickle_put_int(pickle, "time_us", (int64_t)(entry->unix_ns / 1000));
	if (entry->action != SL_EXPORT_OOM && is_outside(entry->flags))
		put_outside(pickle);
	if (!p->process.model->recording.follows_process)
		sl_export_window_keys(s, p, entry);
	else
		sl_pickle_put_text(pickle, "category", p->wheres.item[entry->where].library);
	sl_export_put_frames(s, p, entry->where);
	sl_pickle_close(pickle);
	sl_pickle_next(pickle);
}

/* Ends the list with what the viewer expects: an event of category "unknown" (a bug of the viewer), and a snapshot. */
static void put_last(struct sl_export_snapshot *s, uint64_t unix_ns)
{
	sl_pickle_dict(&s->pickle);
	sl_pickle_put_text(&s->pickle, "action", "snapshot");
	sl_pickle_put_int(&s->pickle, "addr", 0);
	sl_pickle_put_int(&s->pickle, "size", 0);
	sl_pickle_put_int(&s->pickle, "stream", 0);
	sl_pickle_put_int(&s->pickle, "time_us", (int64_t)(unix_ns / 1000));
	sl_pickle_put_text(&s->pickle, "category", "unknown");
	sl_pickle_put_empty(&s->pickle, "frames");
	sl_pickle_close(&s->pickle);
	sl_pickle_next(&s->pickle);
}

/* The numbers of the kept entries, one device after the other, each in order.  Those of device d begin at begins[d]. */
static uint64_t *by_device(const struct sl_export_snapshot *s, size_t *begins)
{
	uint64_t first = s->count > s->cap ? s->count - s->cap : 0;
	uint64_t *order = sl_memory_must(malloc((s->count - first + 1) * sizeof(*order)));

	for (uint64_t i = first; i < s->count; i++)
		begins[device_of(s, i) + 2]++;
	for (unsigned d = 0; d < s->devices; d++)
		begins[d + 2] += begins[d + 1];
	for (uint64_t i = first; i < s->count; i++)
		order[begins[device_of(s, i) + 1]++] = i; /* which makes an end of each begin */
	return order;
}

/* True: each process is a snapshot. */
static bool all_windows(const struct sl_merge *merge)
{
	for (unsigned i = 0; i < merge->count; i++)
		if (merge->processes[i].process.model->recording.follows_process)
			return false;
	return merge->count > 0;
}

static void put_traces(struct sl_export_snapshot *s)
{
	size_t *begins = sl_memory_must(calloc(s->devices + 2, sizeof(*begins)));
	uint64_t *order = by_device(s, begins);
	uint64_t last_ns = 0;

	for (unsigned d = 0; d < s->devices; d++) {
		bool categories = begins[d] == begins[d + 1] && !all_windows(s->job->merge);

		sl_pickle_list(&s->pickle);
		for (size_t i = begins[d]; i < begins[d + 1]; i++) {
			const struct sl_export_entry *entry = &s->entries[order[i] % s->cap];

			put_entry(s, entry);
			last_ns = entry->unix_ns;
			categories |= s->job->merge->processes[entry->process].process.model->recording.follows_process;
		}
		if (categories)
			put_last(s, last_ns);
		sl_pickle_close(&s->pickle);
		sl_pickle_next(&s->pickle);
	}
	free(order);
	free(begins);
}

/* Memory becomes a segment when a pool hands out its first block.  Its end, or that of the trace, shows where it began. */
static void find_pooled(struct sl_export_snapshot *s)
{
	struct sl_idmap *later = sl_memory_must(calloc(s->job->merge->count + 1, sizeof(*later))); /* of each process */

	for (uint64_t i = s->count, first = s->count > s->cap ? s->count - s->cap : 0; i-- > first;) {
		struct sl_export_entry *entry = &s->entries[i % s->cap];
		const struct sl_model *model = s->job->merge->processes[entry->process].process.model;
		const struct sl_live *live;

		if (!(entry->flags & SL_EXPORT_DRIVER) || entry->action == SL_EXPORT_OOM || entry->action == SL_EXPORT_FREE)
			continue;
		if (entry->action == SL_EXPORT_SEGMENT_FREE || entry->action == SL_EXPORT_SEGMENT_UNMAP) {
			sl_idmap_set(&later[entry->process], entry->address, entry->flags);
			continue;
		}
		live = sl_table_find(&model->pointers, entry->address)
			       ?: sl_table_find(sl_vmm_mappings(model->vmm), entry->address);
		entry->flags =
			(uint8_t)sl_idmap_get(&later[entry->process], entry->address, (live ? live->flags : 0) | SL_EXPORT_DRIVER);
	}
	for (unsigned i = 0; i < s->job->merge->count; i++)
		sl_idmap_free(&later[i]);
	free(later);
}

/* The devices of a process are those that its model, an event or a block names; a single process keeps its own numbers. */
static void number_devices(struct sl_export_snapshot *s)
{
	const struct sl_merge *merge = s->job->merge;
	size_t kept_count = s->count < s->cap ? s->count : s->cap;
	bool alone = merge->count == 1;

	s->number = sl_memory_must(calloc((size_t)merge->count * SL_DEVICES_MAX + 1, sizeof(*s->number)));
	for (size_t i = 0; i < kept_count; i++)
		*number_of(s, s->entries[i].process, s->entries[i].device) = SEEN;
	for (unsigned i = 0; i < merge->count; i++) {
		const struct sl_model *model = merge->processes[i].process.model;

		for (size_t k = 0; k < model->sites.count; k++)
			if (model->sites.item[k].device >= 0 && model->sites.item[k].device < SL_DEVICES_MAX)
				*number_of(s, i, model->sites.item[k].device) = SEEN;
		for (int d = 0; d < SL_DEVICES_MAX; d++) {
			unsigned *number = number_of(s, i, d);

			if (alone && (*number || model->devices[d + 1]))
				s->devices = (unsigned)d + 1;
			if (alone)
				*number = (unsigned)d;
			if (alone || (!*number && !model->devices[d + 1]))
				continue;
			*number = s->devices++;
			if (*number < DEVICES_SAID)
				sl_escape_print(stderr, "stormlog-analyze: device %u of the snapshot is device %d of %s\n", *number,
						d, SL_WHO(&merge->processes[i].process));
		}
	}
	if (!alone && s->devices > DEVICES_SAID)
		sl_escape_print(stderr, "stormlog-analyze: and so on, to device %u\n", s->devices - 1);
}

/* Prints what a snapshot cannot show: memory held at the end without an address. */
static void say_left_out(const struct sl_merge *merge)
{
	uint64_t unmapped = 0, arrays = 0;

	for (unsigned i = 0; i < merge->count; i++) {
		const struct sl_model *model = merge->processes[i].process.model;
		size_t count;
		const struct sl_physical *physical = sl_vmm_physical(model->vmm, &count);

		for (size_t k = 0; k < count; k++)
			if (physical[k].site != SL_NO_SITE && !physical[k].mappings &&
			    model->sites.item[physical[k].site].device >= 0)
				unmapped += physical[k].bytes;
		for (unsigned d = 1; d <= SL_DEVICES_MAX; d++)
			arrays += sl_model_row(model, SL_KIND_array, d)->live_bytes;
	}
	if (unmapped || arrays)
		sl_escape_print(stderr,
				"stormlog-analyze: left out of the snapshot (no device address): %s unmapped, %s in arrays\n",
				SL_SIZE(unmapped), SL_SIZE(arrays));
}

static void write_snapshot(struct sl_export_snapshot *s)
{
	const struct sl_merge *merge = s->job->merge;
	const char *card = NULL;

	say_left_out(merge);
	sl_pickle_begin(&s->pickle, s->job->out);
	sl_pickle_dict(&s->pickle);
	sl_pickle_put_text(&s->pickle, "stormlog", SL_VERSION);
	for (unsigned i = 0; i < merge->count && !card; i++)
		card = sl_dry_card(&merge->processes[i].process.trace->header);
	if (card)
		sl_pickle_put_text(&s->pickle, "stormlog_dry", card);
	sl_pickle_text(&s->pickle, "segments");
	sl_pickle_list(&s->pickle);
	for (unsigned i = 0; i < merge->count; i++)
		put_segments(s, &merge->processes[i]);
	sl_pickle_close(&s->pickle);
	sl_pickle_next(&s->pickle);
	sl_pickle_text(&s->pickle, "device_traces");
	sl_pickle_list(&s->pickle);
	put_traces(s);
	sl_pickle_close(&s->pickle);
	sl_pickle_next(&s->pickle);
	if (all_windows(merge))
		sl_export_window_settings(s, &merge->processes[0]);
	sl_pickle_close(&s->pickle);
	sl_pickle_end(&s->pickle);
}

static bool run(struct sl_export_job *job)
{
	struct sl_export_snapshot s = {.job = job, .cap = job->max_events ? job->max_events : EVENTS_MAX};
	struct sl_merge_process *p;

	s.entries = calloc(s.cap, sizeof(*s.entries));
	if (!s.entries)
		return sl_escape_fail("stormlog-analyze", false, "--max-events %llu is more than fits into memory",
				      (unsigned long long)s.cap);
	s.windows = sl_memory_must(calloc(job->merge->count + 1, sizeof(*s.windows)));
	while ((p = sl_merge_next(job->merge)))
		if (p->item->kind == SL_ITEM_EVENT)
			(p->process.model->recording.follows_process ? take_event : sl_export_window_take)(&s, p);
	if (s.count > s.cap)
		sl_escape_print(stderr,
				"stormlog-analyze: the newest %llu of %llu events; --max-events N or --from, --to take others\n",
				(unsigned long long)s.cap, (unsigned long long)s.count);
	number_devices(&s);
	find_pooled(&s);
	write_snapshot(&s);
	free(s.entries);
	free(s.number);
	export_window_free(&s);
	sl_idmap_free(&s.memos);
	return !ferror(job->out);
}

const struct sl_export sl_export_snapshot = {
	.name = "pytorch-snapshot", .summary = "for pytorch.org/memory_viz, of any program", .models = true, .run = run};
