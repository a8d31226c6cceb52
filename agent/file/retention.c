/* SPDX-License-Identifier: MIT */
/*
 * A fold goes twice over file 1 and the oldest files after it.  It takes as many files as are beyond the limit, so that file 1 is
 * read and written once for all of them.  The first pass finds for each address of a block the latest event that names it; frames
 * of several threads are in any order.  It counts the events that may go, and marks the frames with an event that stays.  The
 * second pass copies what stays; of a frame that is not marked it reads the index alone.
 * (Longer than other files: both passes and the change from file to file share the state of one fold.)
 */
#define ZSTD_STATIC_LINKING_ONLY

#include <fcntl.h>
#include <stdio.h>
#include <zstd.h>

#include "agent/file/file.h"
#include "agent/process/process.h"
#include "common/block.h"
#include "common/now.h"

#define FIRST_SLOTS (1u << 14)

static struct sl_latest *find(const struct sl_latest_table *table, uint64_t address)
{
	uint64_t i = address * 0x9e3779b97f4a7c15ull >> 20 & table->mask;

	while (table->slot[i].address && table->slot[i].address != address)
		i = (i + 1) & table->mask;
	return &table->slot[i];
}

/* True: no later event can make it stay, so it can be forgotten. */
static bool is_over(const struct sl_latest_table *table, const struct sl_latest *last, uint64_t oldest_ns)
{
	if (sl_latest_counts(table, last))
		return false;
	return table->until_ns && last->next ? oldest_ns > table->until_ns : last->when >> 1 < oldest_ns;
}

/* Copies into a table of `slots` all entries but those that are over when no event older than oldest_ns can come. */
static bool copy(struct sl_latest_table *into, const struct sl_latest_table *table, uint64_t slots, uint64_t oldest_ns)
{
	*into = (struct sl_latest_table){
		.until_ns = table->until_ns, .slot = sl_pages_map(slots * sizeof(*into->slot)), .mask = slots - 1};
	if (!into->slot)
		return false;
	for (uint64_t i = 0; table->slot && i <= table->mask; i++) {
		const struct sl_latest *last = &table->slot[i];

		if (!last->address || is_over(table, last, oldest_ns))
			continue;
		*find(into, last->address) = *last;
		into->count++;
	}
	return true;
}

static void free_latest(struct sl_latest_table *table)
{
	if (table->slot)
		munmap(table->slot, (table->mask + 1) * sizeof(*table->slot));
	*table = (struct sl_latest_table){0};
}

/* Makes room for more addresses.  Later events are at oldest_ns or later.  False: no memory. */
static bool latest_grow(struct sl_latest_table *table, uint64_t oldest_ns)
{
	uint64_t slots = table->slot ? table->mask + 1 : FIRST_SLOTS;
	struct sl_latest_table next;

	if (!copy(&next, table, slots, oldest_ns))
		return false;
	free_latest(table);
	*table = next;
	if (table->count * 2 < table->mask)
		return true; /* forgetting made enough room */
	if (!copy(&next, table, 2 * slots, oldest_ns))
		return false;
	free_latest(table);
	*table = next;
	return true;
}

/* Notes an event; the table must not be full.  Of events at the same time the one noted last counts. */
static void note_latest(struct sl_latest_table *table, uint64_t address, uint64_t time_ns, bool allocates, uint32_t frame)
{
	struct sl_latest *last = find(table, address);

	table->count += !last->address;
	last->address = address;
	if (table->until_ns && time_ns > table->until_ns) {
		if (!last->next || time_ns < last->next >> 1) {
			last->next = time_ns << 1 | allocates;
			last->next_frame = frame;
		}
		return;
	}
	last->balance += allocates ? 1 : -1;
	if (time_ns >= last->when >> 1) {
		last->when = time_ns << 1 | allocates;
		last->frame = frame;
	}
}

/* True: this event is the last of its address, and counts, or it frees what lived at the instant. */
static bool latest_is(const struct sl_latest_table *table, uint64_t address, uint64_t time_ns, bool allocates)
{
	const struct sl_latest *last = table->slot ? find(table, address) : NULL;
	uint64_t when = time_ns << 1 | allocates;

	return last && sl_latest_counts(table, last) && (last->when == when || (last->next == when && !allocates));
}

#define FILES		8  /* files into which STORMLOG_KEEP is divided */
#define SOURCES_MAX	64 /* most files of one fold */
#define FILE_BYTES_MIN	(64u << 10)
#define CONTENT_BYTES	SL_BLOCK_BYTES(SL_BLOCK_EVENTS)
#define SAMPLE_EVERY_NS (60 * SL_NS_PER_S)
#define WORK_MAX_NS	200000000ull /* longest work at a stretch: part of what the ring holds at 2 million events a second */

static struct fold {
	bool active;
	unsigned tried; /* the newest file when a fold last failed: no retry before there is a newer one */
	unsigned through;
	unsigned pass, source, sources; /* source 0 is file 1, the last source is the file `through` */
	int in, out;			/* in -1: the file was removed */
	uint64_t at, size;		/* offset and size of `in` */
	uint64_t in_device, in_inode, out_at, out_device, out_inode;
	uint32_t frame;		      /* number of the frame at `at` */
	uint8_t *needed[SOURCES_MAX]; /* by source and frame: an event of the frame stays; few of its pages are touched */
	size_t needed_bytes[SOURCES_MAX];

	struct sl_latest_table table;
	struct sl_peak peak[SL_PEAKS_MAX];
	struct sl_latest_table at_peak[SL_PEAKS_MAX];
	unsigned peaks;
	struct sl_checkpoint left; /* events that are left out */

	/* a block of the new file 1, filled from one or more blocks of a thread; room for two */
	struct sl_event *pending;
	unsigned pending_count;
	struct sl_frame_index pending_index;

	struct thinned {
		int64_t device;
		uint64_t ns, peak; /* time of the last sample that was kept; 0: none was */
	} thinned[SL_CHECKPOINT_DEVICES];

	void *decompressor;
	uint8_t *packed, *content, *made; /* a frame as read, decompressed, and to be written */
} fold;

void sl_retention_prepare(void)
{
	if (fold.active) {
		sl_file_close_own(fold.in, fold.in_device, fold.in_inode);
		sl_file_close_own(fold.out, fold.out_device, fold.out_inode);
	}
	/* forgotten without munmap, since the fork may have come after an munmap but before it was noted */
	fold.table = (struct sl_latest_table){0};
	memset(fold.at_peak, 0, sizeof(fold.at_peak));
	sl_peaks_prepare();
	memset(fold.needed, 0, sizeof(fold.needed));
	fold.left.thread_next = NULL;
	fold.active = false;
	fold.tried = 0;
}

uint64_t sl_retention_file_bytes(uint64_t keep)
{
	if (!keep)
		return UINT64_MAX;
	return keep / FILES < FILE_BYTES_MIN ? FILE_BYTES_MIN : keep / FILES;
}

/* The least time of the events that the first pass has still to read. */
static uint64_t oldest_to_come(void)
{
	struct sl_frame_index index;
	uint64_t oldest = UINT64_MAX;

	for (uint64_t at = fold.at; at + sizeof(index) <= fold.size; at += sizeof(index) + index.compressed) {
		if (pread(fold.in, &index, sizeof(index), (off_t)at) != sizeof(index) || index.magic != SL_FRAME_MAGIC)
			return 0;
		if (index.kind == SL_FRAME_BLOCK && index.begin_ns < oldest)
			oldest = index.begin_ns;
	}
	return oldest;
}

/* --- which events stay ------------------------------------------------------------------------------- */

static unsigned verb_of(const struct sl_event *event)
{
	return event->api < sl_hook_count ? sl_hooks[event->api].verb : SL_VERB_CALL;
}

static bool is_block(unsigned verb)
{
	return verb == SL_VERB_BLOCK_ALLOC || verb == SL_VERB_BLOCK_FREE;
}

static bool may_go(unsigned verb)
{
	return is_block(verb) || (verb >= SL_VERB_RANGE_PUSH && verb <= SL_VERB_MARK) || verb == SL_VERB_PAIR;
}

static bool stays(const struct sl_event *event)
{
	unsigned verb = verb_of(event);

	bool allocates = verb == SL_VERB_BLOCK_ALLOC;

	if (!may_go(verb))
		return true;
	if (!is_block(verb) || !event->address)
		return false;
	for (unsigned i = 0; i < fold.peaks; i++)
		if (latest_is(&fold.at_peak[i], event->address, event->time_ns, allocates))
			return true;
	return latest_is(&fold.table, event->address, event->time_ns, allocates);
}

/* --- the new file 1 ---------------------------------------------------------------------------------- */

static bool put(struct sl_trace_store *store, struct sl_frame_index index, const void *bytes, size_t size)
{
	struct iovec parts[2] = {{&index, sizeof(index)}, {store->frame, 0}};

	if (sl_store_compress(store, &index, bytes, size) || !sl_file_is(fold.out, fold.out_device, fold.out_inode))
		return false;
	parts[1].iov_len = index.compressed;
	if (sl_file_write(fold.out, parts, 2, fold.out_at))
		return false;
	fold.out_at += sizeof(index) + index.compressed;
	return true;
}

/* Write the first `count` pending events as one block; those after them stay pending. */
static bool flush_pending(struct sl_trace_store *store, unsigned count)
{
	struct sl_frame_index *index = &fold.pending_index;
	size_t size;

	if (!count)
		return true;
	index->count = count;
	index->begin_ns = UINT64_MAX;
	index->end_ns = 0;
	for (unsigned i = 0; i < count; i++) {
		index->begin_ns = fold.pending[i].time_ns < index->begin_ns ? fold.pending[i].time_ns : index->begin_ns;
		sl_checkpoint_raise(&index->end_ns, fold.pending[i].time_ns);
	}
	size = sl_block_encode(fold.made, index->thread, index->first, index->next, fold.pending, count);
	fold.pending_count -= count;
	memmove(fold.pending, fold.pending + count, fold.pending_count * sizeof(*fold.pending));
	return put(store, *index, fold.made, size);
}

/* What stays of one block goes into one block, so that blocks of a thread never overlap. */
static bool copy_block(struct sl_trace_store *store, const struct sl_frame_index *from, struct sl_block *block)
{
	struct sl_frame_index *index = &fold.pending_index;
	const struct sl_event *event;
	unsigned before;

	if (index->thread != from->thread && !flush_pending(store, fold.pending_count))
		return false;
	before = fold.pending_count;
	while ((event = sl_block_next(block))) {
		if (!stays(event))
			continue;
		fold.pending[fold.pending_count++] = *event;
		if (may_go(verb_of(event)))
			sl_checkpoint_count(&fold.left, event, verb_of(event), -1);
	}
	if (fold.pending_count > SL_BLOCK_EVENTS) {
		if (!flush_pending(store, before))
			return false;
		before = 0;
	}
	if (!before)
		*index = (struct sl_frame_index){.kind = SL_FRAME_BLOCK, .thread = from->thread, .first = from->first};
	index->next = from->next;
	return true;
}

static bool note_in(struct sl_latest_table *table, const struct sl_event *event, bool allocates)
{
	if (sl_latest_full(table) && !latest_grow(table, oldest_to_come()))
		return false;
	note_latest(table, event->address, event->time_ns, allocates, fold.frame * SOURCES_MAX + fold.source);
	return true;
}

static bool note_block(const struct sl_event *event, bool allocates)
{
	if (!event->address)
		return true;
	for (unsigned i = 0; i < fold.peaks; i++)
		if (fold.peak[i].device == event->device && !note_in(&fold.at_peak[i], event, allocates))
			return false;
	return note_in(&fold.table, event, allocates);
}

static bool fold_block(struct sl_trace_store *store, const struct sl_frame_index *index, size_t size)
{
	const struct sl_event *event;
	struct sl_block block;

	if (sl_block_decode(&block, fold.content, size))
		return false;
	if (fold.pass == 2)
		return copy_block(store, index, &block);
	if (index->thread < fold.left.threads)
		sl_checkpoint_raise(&fold.left.thread_next[index->thread], index->next);
	while ((event = sl_block_next(&block))) {
		unsigned verb = verb_of(event);

		if (!may_go(verb)) {
			fold.needed[fold.source][fold.frame] = 1;
			continue;
		}
		sl_checkpoint_count(&fold.left, event, verb, 1);
		if (is_block(verb) && !note_block(event, verb == SL_VERB_BLOCK_ALLOC))
			return false;
	}
	return true;
}

static void need(uint32_t frame)
{
	fold.needed[frame % SOURCES_MAX][frame / SOURCES_MAX] = 1;
}

static void need_those_of(const struct sl_latest_table *table)
{
	for (uint64_t i = 0; table->slot && i <= table->mask; i++) {
		const struct sl_latest *last = &table->slot[i];

		if (!last->address || !sl_latest_counts(table, last))
			continue;
		need(last->frame);
		if (last->next)
			need(last->next_frame);
	}
}

/* After the first pass: marks the frames of the events that count. */
static void note_needed(void)
{
	need_those_of(&fold.table);
	for (unsigned i = 0; i < fold.peaks; i++)
		need_those_of(&fold.at_peak[i]);
}

/* Keeps one sample a minute and device, and each that is a new high. */
static bool sample_stays(struct sl_unpack map)
{
	uint64_t ns = 0, bytes = 0, total, free_bytes, device = UINT64_MAX;
	struct thinned *thinned = fold.thinned;

	sl_unpack_number(map, "ns", &ns);
	sl_unpack_number(map, "device", &device);
	if (sl_unpack_number(map, "total_bytes", &total) && sl_unpack_number(map, "free_bytes", &free_bytes))
		bytes = total - free_bytes;
	else if (!sl_unpack_number(map, "used_bytes", &bytes))
		sl_unpack_number(map, "rss_bytes", &bytes);
	while (thinned < fold.thinned + SL_CHECKPOINT_DEVICES - 1 && thinned->ns && thinned->device != (int64_t)device)
		thinned++;
	if (thinned->ns && bytes <= thinned->peak && ns - thinned->ns < SAMPLE_EVERY_NS)
		return false;
	*thinned = (struct thinned){(int64_t)device, ns, bytes > thinned->peak ? bytes : thinned->peak};
	return true;
}

static bool fold_maps(struct sl_trace_store *store, struct sl_frame_index index, size_t size)
{
	struct sl_unpack at = {fold.content, fold.content + size}, map;
	size_t used = 0;

	if (fold.pass == 1)
		return true;
	/* definitions are written before the events that name them, and both are made in the same buffer */
	if (!flush_pending(store, fold.pending_count))
		return false;
	sl_checkpoint_raise(&fold.left.log_next, index.next);
	for (index.count = 0; at.at < at.end;) {
		map = at;
		if (!sl_unpack_skip(&at))
			return false;
		if (sl_unpack_text_is(map, "def", "checkpoint"))
			sl_checkpoint_take(&fold.left, map);
		else if (!sl_unpack_text_is(map, "def", "sample") || sample_stays(map)) {
			memcpy(fold.made + used, map.at, (size_t)(at.at - map.at));
			used += (size_t)(at.at - map.at);
			index.count++;
		}
	}
	return !used || put(store, index, fold.made, used);
}

static bool write_checkpoint(struct sl_trace_store *store)
{
	size_t bytes = sl_checkpoint_pack(&fold.left, fold.made, CONTENT_BYTES, fold.through, fold.peak, fold.peaks);

	return bytes &&
	       put(store, (struct sl_frame_index){.kind = SL_FRAME_DEFS, .count = 1, .next = fold.left.log_next}, fold.made, bytes);
}

/* --- from frame to frame ----------------------------------------------------------------------------- */

static void close_files(void)
{
	sl_file_close_own(fold.in, fold.in_device, fold.in_inode);
	sl_file_close_own(fold.out, fold.out_device, fold.out_inode);
	fold.in = fold.out = -1;
	free_latest(&fold.table);
	for (unsigned i = 0; i < fold.peaks; i++)
		free_latest(&fold.at_peak[i]);
	for (unsigned source = 0; source < SOURCES_MAX; source++) {
		if (fold.needed[source])
			munmap(fold.needed[source], fold.needed_bytes[source]);
		fold.needed[source] = NULL;
	}
	if (fold.left.thread_next)
		munmap(fold.left.thread_next, (fold.left.threads + 1) * sizeof(*fold.left.thread_next));
	fold.left.thread_next = NULL;
	fold.active = false;
}

void sl_retention_stop(struct sl_trace_store *store)
{
	char path[SL_STORE_PATH];

	if (!fold.active)
		return;
	close_files();
	sl_store_path(store, 0, path);
	sl_file_remove(path);
}

/* Opens the file with a high descriptor number; -1 and size 0: it does not exist. */
static int open_file(const struct sl_trace_store *store, unsigned number, uint64_t *size)
{
	char path[SL_STORE_PATH];
	off_t end;
	int fd;

	*size = 0;
	sl_store_path(store, number, path);
	fd = sl_file_open(path, O_RDONLY | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	fd = sl_file_move_high(fd);
	end = lseek(fd, 0, SEEK_END);
	*size = end < 0 ? 0 : (uint64_t)end;
	return fd;
}

static unsigned file_of(unsigned source)
{
	return source ? fold.through - (fold.sources - 1 - source) : 1;
}

/* A removed file has nothing to fold; the limit holds for the others. */
static bool open_source(struct sl_trace_store *store, unsigned source)
{
	sl_file_close_own(fold.in, fold.in_device, fold.in_inode);
	fold.in = open_file(store, file_of(source), &fold.size);
	if (fold.in < 0 ? errno != ENOENT : !sl_file_identity(fold.in, &fold.in_device, &fold.in_inode))
		return false;
	/* the file was removed after the first pass, so that nothing can be copied: the next fold begins without it */
	if (fold.in < 0 && fold.pass == 2 && fold.needed_bytes[source] > 1)
		return false;
	if (fold.in < 0 && fold.pass == 1)
		sl_define_gap(0, source ? fold.left.until_ns : sl_agent->process.monotonic_ns, sl_agent_now(),
			      "a file of the trace was removed", true);
	fold.source = source;
	fold.at = fold.frame = 0;
	if (fold.needed[source]) /* the file may have grown */
		return fold.size / sizeof(struct sl_frame_index) < fold.needed_bytes[source];
	fold.needed_bytes[source] = fold.size / sizeof(struct sl_frame_index) + 1;
	fold.needed[source] = sl_pages_map(fold.needed_bytes[source]);
	return fold.needed[source];
}

static bool have_buffers(void)
{
	size_t workspace = ZSTD_estimateDCtxSize();
	void *pages;

	if (fold.decompressor)
		return true;
	pages = sl_pages_map(workspace);
	fold.packed = sl_pages_map(ZSTD_compressBound(CONTENT_BYTES));
	fold.content = sl_pages_map(CONTENT_BYTES);
	fold.made = sl_pages_map(CONTENT_BYTES);
	fold.pending = sl_pages_map(2 * SL_BLOCK_EVENTS * sizeof(*fold.pending));
	if (pages && fold.packed && fold.content && fold.made && fold.pending)
		fold.decompressor = ZSTD_initStaticDCtx(pages, workspace);
	return fold.decompressor;
}

/*
 * How many files the next fold takes.  A fold needs room for a second file 1. If file 1 is most of the limit already, since calls
 * are never folded, a fold waits until the rest is as large, so that its work stays in proportion.  The file closed last is not
 * folded, because the present one may be nearly empty and the newest minutes are to stay.
 */
static unsigned due(const struct sl_trace_store *store, uint64_t keep)
{
	uint64_t file = sl_retention_file_bytes(keep), all = store->closed_bytes + store->end,
		 need = all + store->base_bytes + file / 2;
	uint64_t closed = store->number - 1 - store->folded, may = closed ? closed - 1 : 0;
	uint64_t limit = may < SOURCES_MAX - 1 ? may : SOURCES_MAX - 1;

	if (!keep || !may || fold.tried == store->number || all <= 2 * store->base_bytes || need <= keep)
		return 0;
	return (unsigned)((need - keep) / file < limit ? (need - keep) / file + 1 : limit);
}

static bool begin(struct sl_trace_store *store, unsigned files)
{
	char path[SL_STORE_PATH];

	fold.tried = store->number;
	fold.through = store->folded + files;
	fold.sources = store->folded ? 1 + files : files; /* file 1 is the first to be folded */
	fold.pass = 1;
	fold.in = fold.out = -1;
	fold.out_at = fold.left.until_ns = fold.left.log_next = 0;
	fold.left.devices = fold.pending_count = 0;
	fold.peaks = sl_peaks_copy(fold.peak);
	for (unsigned i = 0; i < fold.peaks; i++)
		fold.at_peak[i].until_ns = fold.peak[i].ns;
	memset(fold.thinned, 0, sizeof(fold.thinned));
	fold.left.threads = atomic_load(&sl_agent->ring->file->threads) + 1;
	fold.left.thread_next = sl_pages_map((fold.left.threads + 1) * sizeof(*fold.left.thread_next));
	fold.active = true;
	sl_store_path(store, 0, path);
	sl_file_remove(path);
	fold.out = sl_store_create(path);
	if (!fold.left.thread_next || !have_buffers() || !sl_file_identity(fold.out, &fold.out_device, &fold.out_inode) ||
	    !open_source(store, 0)) {
		sl_retention_stop(store);
		return false;
	}
	return true;
}

static bool fold_frame(struct sl_trace_store *store, const struct sl_frame_index *index)
{
	size_t size;

	if (index->compressed > ZSTD_compressBound(CONTENT_BYTES) ||
	    pread(fold.in, fold.packed, index->compressed, (off_t)(fold.at + sizeof(*index))) != (ssize_t)index->compressed)
		return false;
	size = ZSTD_decompressDCtx(fold.decompressor, fold.content, CONTENT_BYTES, fold.packed, index->compressed);
	if (ZSTD_isError(size))
		return false;
	switch (index->kind) {
	case SL_FRAME_BLOCK:
		return fold_block(store, index, size);
	case SL_FRAME_DEFS:
		return fold_maps(store, *index, size);
	case SL_FRAME_HEADER: /* before the first fold there is no file 1 besides */
		return fold.out_at || put(store, *index, fold.content, size);
	default:
		return put(store, *index, fold.content, size);
	}
}

/* Copies one frame of the source.  False: it is not as we wrote it, or the disk refuses. */
static bool step(struct sl_trace_store *store)
{
	struct sl_frame_index index;
	bool passed_over;

	if (pread(fold.in, &index, sizeof(index), (off_t)fold.at) != sizeof(index) || !sl_frame_index_valid(&index, sizeof(index)))
		return false;
	passed_over = fold.pass == 1 ? index.kind != SL_FRAME_BLOCK
				     : index.kind == SL_FRAME_BLOCK && !fold.needed[fold.source][fold.frame];
	if (!passed_over && !fold_frame(store, &index))
		return false;
	fold.at += sizeof(index) + index.compressed;
	fold.frame++;
	return true;
}

/* Bytes of the files that are not folded yet.  A file that was removed counts 0. */
static uint64_t bytes_behind(const struct sl_trace_store *store)
{
	uint64_t all = 0, size;

	for (unsigned number = fold.through + 1; number < store->number; number++) {
		int fd = open_file(store, number, &size);

		if (fd >= 0)
			sl_file_close(fd);
		all += size;
	}
	return all;
}

static int file_rename(const char *from, const char *to)
{
	return syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to) ? errno : 0;
}

/* Renames the new file 1, which is whole.  From then on a reader takes it and passes over the folded files. */
static bool finish(struct sl_trace_store *store)
{
	char made[SL_STORE_PATH], path[SL_STORE_PATH];

	if (!flush_pending(store, fold.pending_count) || !write_checkpoint(store))
		return false;
	if (sl_agent->options.fsync && fdatasync(fold.out))
		return false;
	sl_store_path(store, 0, made);
	sl_store_path(store, 1, path);
	if (file_rename(made, path))
		return false;
	for (unsigned source = 1; source < fold.sources; source++) {
		sl_store_path(store, file_of(source), path);
		sl_file_remove(path);
	}
	store->closed_bytes = fold.out_at + bytes_behind(store);
	store->base_bytes = fold.out_at;
	store->folded = fold.through;
	fold.tried = 0; /* there may be more to fold */
	close_files();
	return true;
}

/* Goes on to the next file, the next pass, or the end. */
static bool turn(struct sl_trace_store *store)
{
	if (fold.source + 1 < fold.sources)
		return open_source(store, fold.source + 1);
	if (fold.pass++ == 2)
		return finish(store);
	note_needed();
	return open_source(store, 0);
}

bool sl_retention_work(struct sl_trace_store *store, uint64_t keep, uint64_t budget_ns)
{
	uint64_t since_ns = sl_now_kernel_ns(CLOCK_THREAD_CPUTIME_ID), begin_ns = sl_agent_now();
	unsigned files = fold.active ? 0 : due(store, keep);

	if (!fold.active && (!files || !begin(store, files)))
		return false;
	if (store->closed_bytes + store->end + fold.out_at > keep) /* new events stay in the ring meanwhile */
		budget_ns = WORK_MAX_NS;
	while (fold.active && sl_now_kernel_ns(CLOCK_THREAD_CPUTIME_ID) - since_ns < budget_ns &&
	       sl_agent_now() - begin_ns < WORK_MAX_NS && !atomic_load(&sl_agent->urgent)) {
		atomic_store(&sl_agent->writing_since_ns, sl_agent_now());
		if (!(fold.at < fold.size ? step(store) : turn(store)))
			sl_retention_stop(store);
		atomic_store(&sl_agent->writing_since_ns, 0);
	}
	return fold.active;
}
