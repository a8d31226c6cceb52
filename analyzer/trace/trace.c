/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/pool.h"
#include "analyzer/trace/inner.h"
#include "analyzer/trace/trace.h"
#include "common/tracefile.h"

static uint64_t cell(const msgpack_object *row, uint32_t column)
{
	uint64_t value = 0;

	if (row->type == MSGPACK_OBJECT_ARRAY && column < row->via.array.size)
		sl_object_number(&row->via.array.ptr[column], &value);
	return value;
}

static int64_t signed_cell(const msgpack_object *row, uint32_t column)
{
	bool below = row->type == MSGPACK_OBJECT_ARRAY && column < row->via.array.size &&
		     row->via.array.ptr[column].type == MSGPACK_OBJECT_NEGATIVE_INTEGER;

	return below ? row->via.array.ptr[column].via.i64 : (int64_t)cell(row, column);
}

/* Reads the rows of a table in the map; count 0: the map has no such table. */
static const msgpack_object *rows_of(const msgpack_object *map, const char *key, uint32_t *count)
{
	const msgpack_object *table = sl_object_get(map, key);

	*count = table && table->type == MSGPACK_OBJECT_ARRAY ? table->via.array.size : 0;
	return *count ? table->via.array.ptr : NULL;
}

/* Adds the map's rows to what is known; missing rows and cells count as 0. */
static void totals_checkpoint(struct sl_folded *folded, const msgpack_object *map)
{
	const msgpack_object *row;
	uint32_t count;

	folded->through = (unsigned)sl_object_u64(map, "through", 0);
	folded->until_ns = sl_object_u64(map, "until_ns", 0);
	row = rows_of(map, "blocks", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&folded->blocks) = (struct sl_totals_blocks){signed_cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3),
								      cell(row, 4),	   cell(row, 5), cell(row, 6)};
	row = rows_of(map, "peaks", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&folded->peaks) = (struct sl_totals_peak){signed_cell(row, 0), cell(row, 1)};
	row = rows_of(map, "threads", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&folded->threads) = (struct sl_totals_thread){cell(row, 0), cell(row, 1)};
}

static unsigned kind_of(const struct sl_header *header, uint64_t kind)
{
	return kind < 256 ? header->kinds[kind] : SL_KIND_unknown;
}

static void totals_slept(struct sl_slept *slept, const struct sl_header *header, const msgpack_object *map)
{
	uint64_t begin_ns = sl_object_u64(map, "begin_ns", 0), end_ns = sl_object_u64(map, "end_ns", begin_ns);
	const msgpack_object *row;
	uint32_t count;

	slept->ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
	slept->until_ns = end_ns;
	slept->maps++;
	slept->follow += sl_object_u64(map, "follow", 0);
	row = rows_of(map, "blocks", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&slept->blocks) = (struct sl_slept_blocks){
			kind_of(header, cell(row, 0)), signed_cell(row, 1), cell(row, 2), cell(row, 3), cell(row, 4), cell(row, 5)};
	row = rows_of(map, "calls", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&slept->calls) =
			(struct sl_slept_calls){cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3), cell(row, 4)};
}

static void free_totals(struct sl_folded *folded)
{
	free(folded->blocks.item);
	free(folded->threads.item);
	free(folded->peaks.item);
	free(folded->slept.blocks.item);
	free(folded->slept.calls.item);
}

const char *const sl_ended_names[] = {"running", "killed", "failed", "unknown", "completed"};

enum sl_ended sl_trace_ended(const struct sl_trace *trace)
{
	static const enum sl_ended ends[] = {[SL_STATUS_COMPLETED] = SL_ENDED_COMPLETED,
					     [SL_STATUS_INTERRUPTED] = SL_ENDED_KILLED,
					     [SL_STATUS_RUNNING] = SL_ENDED_RUNNING,
					     [SL_STATUS_UNKNOWN] = SL_ENDED_UNKNOWN};

	return trace->status == SL_STATUS_COMPLETED && trace->exited > 1 ? SL_ENDED_FAILED : ends[trace->status];
}

const char *sl_trace_status(const struct sl_trace *trace)
{
	static const char *const names[] = {"completed", "interrupted", "running", "unknown"};

	return sl_trace_ended(trace) == SL_ENDED_FAILED ? "failed" : names[trace->status];
}

/* Limit for definitions, samples and notes of a process, decompressed; a job of days has some MB */
#define MAP_BYTES_MAX (512u << 20)
#define WHY_MAX	      256u /* bytes of the reason of a gap that are shown */

/* Where the process itself reports lost events, and when.  removed: what had been recorded is gone. */
static void add_gap(struct sl_trace *trace, const char *place, uint64_t count, uint64_t begin_ns, uint64_t end_ns,
		    struct sl_span why, bool removed)
{
	uint64_t start_ns = trace->header.monotonic_ns;
	char number[24] = "an unknown number of";

	trace->gap_events += count;
	if (count)
		snprintf(number, sizeof(number), "%llu", (unsigned long long)count);
	sl_damage_lost(&trace->damage, place, "%s events could not be kept between %.3f s and %.3f s%s%.*s", number,
		       begin_ns < start_ns ? 0 : (double)(begin_ns - start_ns) / 1e9,
		       end_ns < start_ns ? 0 : (double)(end_ns - start_ns) / 1e9, why.text ? ": " : "",
		       (int)(why.size < WHY_MAX ? why.size : WHY_MAX), why.text ? why.text : "");
	trace->damage.readable &= count && !removed;
}

static void take_gap(struct sl_trace *trace, const msgpack_object *map)
{
	add_gap(trace, trace->name, sl_object_u64(map, "count", 0), sl_object_u64(map, "begin_ns", 0),
		sl_object_u64(map, "end_ns", 0), sl_object_text(map, "why"), sl_object_u64(map, "removed", 0));
}

/* By a map's "def": it is a sample or an out-of-memory context. */
static bool record_is(const msgpack_object *def)
{
	return sl_object_is_text(def, "sample") || sl_object_is_text(def, "oom");
}

/* Reads maps that are neither events nor records of a moment. */
static void take_map(struct sl_trace *trace, const msgpack_object *map)
{
	const msgpack_object *def = sl_object_get(map, "def");
	struct sl_span how;

	if (!def) {
		trace->unknown_maps++;
	} else if (sl_object_is_text(def, "gap")) {
		take_gap(trace, map);
	} else if (sl_object_is_text(def, "checkpoint")) {
		totals_checkpoint(&trace->folded, map);
		if (sl_object_u64(map, "log_next", 0) > trace->log_next)
			trace->log_next = sl_object_u64(map, "log_next", 0);
	} else if (sl_object_is_text(def, "slept")) {
		totals_slept(&trace->folded.slept, &trace->header, map);
	} else if (sl_object_is_text(def, "footer")) {
		how = sl_object_text(map, "how");
		trace->how = sl_arena_strndup(&trace->defs.arena, how.text ? how.text : "exit", how.text ? how.size : 4);
		trace->footer_ns = sl_object_u64(map, "ns", 0);
		trace->footer_events = sl_object_u64(map, "events", 0);
		trace->exited = sl_object_get(map, "status") ? 1 + (uint32_t)sl_object_u64(map, "status", 0) : 0;
	} else if (!sl_defs_add(&trace->defs, map) && !record_is(def) && !sl_object_is_text(def, "header") &&
		   !sl_object_is_text(def, "block")) {
		trace->unknown_maps++;
	}
}

void sl_trace_keep_record(struct sl_trace *trace, const struct sl_item *record)
{
	struct sl_cursor *cursor = trace->cursor;
	struct sl_item copy = *record;
	struct sl_span *source = &copy.sample.source, *last = &cursor->source;

	if (copy.kind == SL_ITEM_SAMPLE && source->text) {
		if (!last->text || last->size != source->size || memcmp(last->text, source->text, source->size))
			*last = (struct sl_span){sl_arena_strndup(&trace->defs.arena, source->text, source->size), source->size};
		*source = *last;
	}
	*SL_PUSH(&cursor->records) = copy;
}

static void take_record(struct sl_trace *trace, const msgpack_object *map)
{
	struct sl_item item;

	if (sl_record_read(&item, map))
		sl_trace_keep_record(trace, &item);
}

/* Says once where the run's texts had used up their budget. */
static void say_full(struct sl_trace *trace, const char *path, int64_t offset)
{
	if (sl_pool_refused() && !trace->full) {
		sl_damage_add(&trace->damage, path, offset, SL_TRACE_FULL, (unsigned long long)sl_pool_megabytes());
		trace->full = true;
	}
}

static void take_maps(struct sl_trace *trace, const struct sl_frames *file, struct sl_zstd_frame *frame)
{
	/* What a pass has taken from the ring is not taken from the file again. */
	uint64_t position = frame->first, from = trace->cursor && frame->next ? trace->log_next : 0;
	msgpack_object object;
	size_t at = 0, begin;

	trace->map_bytes += trace->inflate.bytes;
	if (trace->map_bytes > MAP_BYTES_MAX) {
		sl_damage_add(&trace->damage, file->path, (int64_t)frame->offset,
			      "more than %u MB of definitions in one process; this frame is left out", MAP_BYTES_MAX >> 20);
		return;
	}
	frame->no_record = true;
	for (begin = at; at < trace->inflate.bytes; begin = at) {
		if (!sl_object_parse(&object, &trace->zone, trace->inflate.out, trace->inflate.bytes, &at)) {
			sl_damage_add(&trace->damage, file->path, (int64_t)frame->offset, "frame holds no whole map");
			break;
		}
		if (!trace->header.is_known && sl_header_read(&trace->header, &object))
			trace->defs.ahead_ns = trace->header.started_ns - trace->header.monotonic_ns;
		frame->no_record &= !record_is(sl_object_get(&object, "def"));
		if (position >= from)
			take_map(trace, &object);
		if (position >= from && trace->cursor)
			take_record(trace, &object);
		position += SL_DEF_SIZE(at - begin);
		msgpack_zone_clear(&trace->zone);
	}
	say_full(trace, file->path, (int64_t)frame->offset);
}

/* Its index was damaged: the content tells what kind of frame it is. */
static void classify(struct sl_trace *trace, struct sl_zstd_frame *frame)
{
	const struct sl_event *event;
	struct sl_block block;

	frame->kind = SL_FRAME_DEFS;
	if (!sl_block_decode(&block, trace->inflate.out, trace->inflate.bytes)) {
		frame->kind = SL_FRAME_BLOCK;
		frame->thread = block.thread;
		frame->first = block.first;
		frame->next = block.next;
		frame->count = block.count;
		frame->begin_ns = UINT64_MAX;
		while ((event = sl_block_next(&block)))
			if (event->time_ns < frame->begin_ns)
				frame->begin_ns = event->time_ns;
	}
}

bool sl_trace_spent(struct sl_trace *trace, const struct sl_zstd_frame *frame)
{
	struct sl_budget *budget = &trace->budget;

	if (!sl_budget_spent(budget))
		return false;
	if (!budget->reported)
		sl_damage_add(&trace->damage, frame ? trace->files[frame->file].path : trace->name,
			      frame ? (int64_t)frame->offset : -1,
			      "its %llu kB take more of the processor's time than they may; from here on it is not read",
			      (unsigned long long)(trace->disk_bytes / 1000));
	budget->reported = true;
	return true;
}

static void read_definitions(struct sl_trace *trace)
{
	for (unsigned f = 0; f < trace->file_count; f++) {
		struct sl_frames *file = &trace->files[f];

		/* The first file contains this segment already: the process was killed before it could remove the segment. */
		if (f && file->count && sl_images_segment(file->path) <= trace->folded.through)
			file->count = 0;
		for (size_t i = 0; i < file->count; i++) {
			struct sl_zstd_frame *frame = &file->frame[i];

			if (frame->kind == SL_FRAME_BLOCK)
				continue;
			if (sl_trace_spent(trace, frame)) {
				frame->compressed = 0;
				continue;
			}
			if (!sl_frame_read(&trace->inflate, file, frame, &trace->damage)) {
				frame->compressed = 0; /* reported only once */
				continue;
			}
			if (!frame->kind)
				classify(trace, frame);
			if (frame->kind == SL_FRAME_BLOCK)
				continue;
			take_maps(trace, file, frame);
			if (frame->kind == SL_FRAME_DEFS && frame->next > trace->log_next)
				trace->log_next = frame->next;
			if (trace->cursor)
				frame->compressed = 0; /* finished with it */
		}
	}
}

static void take_ring_map(void *data, const uint8_t *bytes, size_t size)
{
	struct sl_trace *trace = data;
	msgpack_object object;
	size_t at = 0;

	if (sl_object_parse(&object, &trace->zone, bytes, size, &at)) {
		take_map(trace, &object);
		if (trace->cursor)
			take_record(trace, &object);
	}
	msgpack_zone_clear(&trace->zone);
}

static void take_lost(struct sl_trace *trace)
{
	struct sl_ringfile *head = trace->ring.head;
	uint64_t lost = atomic_load(&head->gap_events);

	if (lost > trace->gap_events)
		add_gap(trace, trace->ring.path, lost - trace->gap_events, atomic_load(&head->gap_begin_ns),
			atomic_load(&head->gap_end_ns), (struct sl_span){NULL, 0}, false);
}

static void read_ring(struct sl_trace *trace)
{
	size_t at = 0;
	msgpack_object object;

	if (!trace->ring.path)
		return;
	if (!trace->header.is_known && trace->ring.header_map &&
	    sl_object_parse(&object, &trace->zone, trace->ring.header_map, trace->ring.head->header_bytes, &at)) {
		sl_header_read(&trace->header, &object);
		trace->defs.ahead_ns = trace->header.started_ns - trace->header.monotonic_ns;
		msgpack_zone_clear(&trace->zone);
	}
	sl_ring_defs(&trace->ring, trace->log_next, take_ring_map, trace);
	say_full(trace, trace->ring.path, -1);
	take_lost(trace);
	if (atomic_load(&trace->ring.head->stopped))
		sl_damage_lost(&trace->damage, trace->ring.path, "the recording stopped early: %s",
			       strerror((int)atomic_load(&trace->ring.head->stopped)));
}

/* stormlog-attach is alive and still writing, except to a trace that has a footer */
static bool is_watched(const struct sl_header *header)
{
	return header->watcher && header->boot_id && sl_ring_process_lives(header->boot_id, header->watcher, header->watcher_start);
}

static enum sl_status status_of(const struct sl_trace *trace)
{
	int ended = trace->ring.path ? (int)atomic_load(&trace->ring.head->ended) : 0;

	if (trace->how && (!strcmp(trace->how, "detached") || !strcmp(trace->how, "gone") || !strcmp(trace->how, "snapshot")))
		return SL_STATUS_UNKNOWN; /* stormlog-attach saw no end, or not its cause; a snapshot tells none */
	if (trace->footer_ns || trace->how)
		return SL_STATUS_COMPLETED;
	if (!trace->ring.path)
		return is_watched(&trace->header) ? SL_STATUS_RUNNING : SL_STATUS_UNKNOWN;
	if (atomic_load(&trace->ring.head->state) == SL_PROCESS_COMPLETED)
		return SL_STATUS_COMPLETED;
	if (ended)
		return WIFEXITED(ended - 1) ? SL_STATUS_COMPLETED : SL_STATUS_INTERRUPTED;
	if (trace->ring.alive)
		return SL_STATUS_RUNNING;
	return trace->ring.head->leaves_by_call ? SL_STATUS_UNKNOWN : SL_STATUS_INTERRUPTED;
}

/* A process that ended by the bare system call wrote no footer.  The launcher waited for it and stored its status. */
static void take_exit(struct sl_trace *trace)
{
	int ended = trace->ring.path && !trace->exited ? (int)atomic_load(&trace->ring.head->ended) : 0;

	if (ended && WIFEXITED(ended - 1))
		trace->exited = 1 + (uint32_t)WEXITSTATUS(ended - 1);
}

/* Where a ring lies elsewhere (/dev/shm of its node), the header has its path; another user may have made what is there. */
static void open_far_ring(struct sl_trace *trace)
{
	if (trace->ring.path || !trace->file_count || trace->footer_ns || !trace->header.ring || trace->header.ring[0] != '/')
		return;
	if (!sl_ring_open(&trace->ring, trace->header.ring, trace->files[0].owner, &trace->damage))
		sl_damage_note(&trace->damage, trace->name, "its ring %s is out of reach: the last events may be missing",
			       trace->header.ring);
}

/* False: a file vanished since the folder was listed, because the process folded it into the first. */
static bool open_files(struct sl_trace *trace, const struct sl_image *image)
{
	for (unsigned i = 0; i < image->file_count; i++) {
		struct sl_frames *file = &trace->files[trace->file_count];

		if (sl_frames_open(file, image->files[i], (uint16_t)trace->file_count, &trace->damage))
			trace->file_count++;
		else if (errno == ENOENT && trace->file_count)
			return false;
		else
			sl_damage_add(&trace->damage, image->files[i], -1, "%s", strerror(errno));
	}
	return true;
}

static void close_files(struct sl_trace *trace)
{
	for (unsigned i = 0; i < trace->file_count; i++)
		sl_frames_close(&trace->files[i]);
	trace->file_count = 0;
}

/* The process may fold one file after the other while we read; the vanished ones are in the first. */
static void open_settled(struct sl_trace *trace, const struct sl_image *image)
{
	struct sl_image left = *image;

	left.files = sl_memory_must(malloc((image->file_count + 1) * sizeof(*left.files)));
	if (image->file_count) /* no files: the ring alone */
		memcpy(left.files, image->files, image->file_count * sizeof(*left.files));
	while (!open_files(trace, &left)) {
		unsigned kept_count = 1;

		close_files(trace);
		sl_damage_free(&trace->damage);
		for (unsigned i = 1; i < left.file_count; i++)
			if (!access(left.files[i], F_OK))
				left.files[kept_count++] = left.files[i];
		left.file_count = kept_count;
	}
	free(left.files);
}

static uint64_t on_disk(const struct sl_trace *trace)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < trace->file_count; i++)
		bytes += trace->files[i].disk_bytes;
	return bytes;
}

struct sl_trace *sl_trace_blank(void)
{
	struct sl_trace *trace = sl_memory_must(calloc(1, sizeof(*trace)));

	sl_pool_enter();
	msgpack_zone_init(&trace->zone, 256);
	return trace;
}

/* How the process was recorded, when the recording slept, and the parts that are therefore missing. */
static void say_slept(struct sl_trace *trace)
{
	struct sl_slept *slept = &trace->folded.slept;
	const struct sl_ringfile *head = trace->ring.head;
	uint64_t begun, ended;

	if (slept->maps || slept->now_ns)
		*SL_PUSH(&trace->defs.capabilities) = (struct sl_capability){"recorded", sl_trace_recorded(trace)};
	if (slept->maps)
		sl_damage_note(&trace->damage, trace->name,
			       "it was asleep for %llu s: calls and what lives are exact, peaks are of the time awake, blocks made "
			       "asleep have no stack",
			       (unsigned long long)(slept->ns / SL_NS_PER_S));
	if (!slept->now_ns)
		return;
	if (atomic_load(&head->asleep_written) < slept->maps) {
		sl_damage_note(&trace->damage, trace->name,
			       "it was killed while it was woken: of the blocks made asleep some may be missing");
		return;
	}
	begun = atomic_load(&head->asleep_begun);
	ended = atomic_load(&head->asleep_ended);
	sl_damage_note(&trace->damage, trace->name,
		       "it %s: since %.1f s %llu blocks of %llu bytes were made and %llu ended, with %llu bytes of these, and that "
		       "is all that is known of them",
		       trace->ring.alive ? "is asleep (stormlog-attach wakes it)" : "was asleep when it ended",
		       (double)(slept->now_ns - trace->header.monotonic_ns) / 1e9, (unsigned long long)begun,
		       (unsigned long long)atomic_load(&head->asleep_begun_bytes), (unsigned long long)ended,
		       (unsigned long long)atomic_load(&head->asleep_ended_bytes));
}

bool sl_trace_is_whole(const struct sl_trace *trace)
{
	const struct sl_folded *parts = &trace->folded;

	return !sl_header_is_snapshot(&trace->header) && !trace->header.watcher && !parts->through && !parts->slept.maps &&
	       !parts->slept.now_ns && !trace->gap_events && !trace->damage.damaged;
}

const char *sl_trace_recorded(const struct sl_trace *trace)
{
	const struct sl_slept *slept = &trace->folded.slept;

	return trace->header.watcher ? "attached" : slept->now_ns ? "asleep" : slept->maps ? "woken" : "whole";
}

void sl_trace_unseen(const struct sl_trace *trace, char *text, size_t size)
{
	const struct sl_slept *slept = &trace->folded.slept;

	if (trace->header.watcher)
		snprintf(text, size, "attached by BPF: only later calls, without labels and PyTorch's blocks");
	else if (slept->now_ns)
		snprintf(text, size, "asleep since %.0f s; stormlog-attach %lld wakes it",
			 (double)(slept->now_ns - trace->header.monotonic_ns) / 1e9, (long long)trace->header.pid);
	else if (slept->maps)
		snprintf(text, size, "it slept %llu s: no stacks, labels and peaks of that time",
			 (unsigned long long)(slept->ns / SL_NS_PER_S));
	else
		*text = 0;
}

struct sl_trace *sl_trace_open(const struct sl_image *image, struct sl_damage *damage)
{
	struct sl_trace *trace = sl_trace_blank();
	uint64_t keep;

	trace->name = strdup(image->name);
	trace->files = calloc(image->file_count + 1, sizeof(*trace->files));
	sl_budget_resume();
	if (image->ring)
		sl_ring_open(&trace->ring, image->ring, SL_RING_OF_ANY, &trace->damage);
	open_settled(trace, image);
	trace->disk_bytes = on_disk(trace);
	sl_budget_begin(&trace->budget, trace->disk_bytes);
	sl_pool_allow(trace->disk_bytes);
	sl_pool_refused();
	read_definitions(trace);
	sl_incomplete_miss(&(struct sl_files){trace->files, trace->file_count, &trace->folded, trace->log_next}, trace->name,
			   trace->footer_events, &trace->damage);
	open_far_ring(trace);
	read_ring(trace);
	sl_defs_share(&trace->defs);
	if (trace->defs.cut_names)
		sl_damage_note(&trace->damage, trace->name, "%u names are longer than any that is recorded and were cut",
			       trace->defs.cut_names);
	if (trace->defs.left_out)
		sl_damage_note(&trace->damage, trace->name,
			       "%u devices, capabilities, notes or keys are beyond the %d of each that are kept",
			       trace->defs.left_out, SL_DEFS_FEW);
	if (trace->header.left_out)
		sl_damage_note(
			&trace->damage, trace->name,
			"%u arguments, settings, variables or calls of its header are beyond those that are kept (%d of each "
			"list)",
			trace->header.left_out, SL_HEADER_FEW);
	sl_incomplete_say(&(struct sl_files){trace->files, trace->file_count, &trace->folded, trace->log_next}, &trace->ring,
			  &trace->damage);
	for (unsigned f = 0; f < trace->file_count && !trace->ring.path; f++)
		trace->damage.lost_events += trace->files[f].torn_events;
	trace->status = status_of(trace);
	take_exit(trace);
	if (trace->ring.path && atomic_load(&trace->ring.head->asleep)) {
		uint64_t since_ns = atomic_load(&trace->ring.head->asleep_since_ns);

		trace->folded.slept.now_ns = since_ns ? since_ns : 1;
	}
	if (trace->folded.until_ns > trace->header.monotonic_ns) /* 0: no block events were among what was folded */
		sl_damage_note(&trace->damage, trace->name,
			       "the first %.1f s were dropped to stay below --keep. Totals and live memory are exact; labels and "
			       "growth begin after it",
			       (double)(trace->folded.until_ns - trace->header.monotonic_ns) / 1e9);
	keep = strtoull(sl_header_setting(&trace->header, "keep"), NULL, 10);
	if (keep && trace->disk_bytes > keep)
		sl_damage_note(
			&trace->damage, trace->name,
			"its files have %s, more than --keep %s: no call of the GPU's library is ever left out, and a file has "
			"64 KiB or more",
			SL_SIZE(trace->disk_bytes), SL_SIZE(keep));
	say_slept(trace);
	if (trace->header.is_known)
		return trace;
	if (trace->file_count == 1 && trace->files[0].unfinished && !trace->files[0].unfinished_at) {
		sl_damage_free(&trace->damage); /* where no frame is whole, that is all there is to say */
		sl_damage_add(&trace->damage, image->name, -1,
			      "cut off at %s bytes, before its first event; was it copied while the program ran?",
			      SL_NUMBER((uint64_t)lseek(trace->files[0].fd, 0, SEEK_END)));
	} else {
		sl_damage_add(&trace->damage, image->name, -1,
			      image->summary ? "a summary has no events: this needs the trace" : "no readable header");
	}
	*damage = trace->damage;
	trace->damage = (struct sl_damage){0};
	sl_trace_close(trace);
	return NULL;
}

void sl_trace_close(struct sl_trace *trace)
{
	if (!trace)
		return;
	close_files(trace);
	free(trace->files);
	free_totals(&trace->folded);
	sl_ring_free(&trace->ring);
	sl_defs_free(&trace->defs);
	sl_header_free(&trace->header);
	sl_damage_free(&trace->damage);
	sl_inflate_free(&trace->inflate);
	msgpack_zone_destroy(&trace->zone);
	sl_cursor_free(trace->cursor);
	free(trace->name);
	free(trace);
	sl_pool_leave();
}

void sl_trace_rest(struct sl_trace *trace)
{
	for (unsigned i = 0; i < trace->file_count; i++)
		sl_frames_rest(&trace->files[i]);
	sl_inflate_free(&trace->inflate);
	msgpack_zone_destroy(&trace->zone);
	msgpack_zone_init(&trace->zone, 256);
}

/* ---- a trace that grows */

void sl_trace_read_more(struct sl_trace *trace)
{
	read_definitions(trace);
	if (trace->ring.path) {
		trace->log_next = sl_ring_defs_settled(&trace->ring, trace->log_next, take_ring_map, trace);
		say_full(trace, trace->ring.path, -1);
		take_lost(trace);
	}
	trace->status = status_of(trace);
	take_exit(trace);
	sl_inflate_free(&trace->inflate); /* 1 MiB that each of many traces would keep until its next definitions */
}
