/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/trace.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/compress.h"
#include "common/tracefile.h"

#define FRAME_MAX    (8u << 20)	 /* no writer makes larger frames; a larger one is damage */
#define CONTENT_MAX  (64u << 20) /* decompressed */
#define SEARCH_BYTES (1u << 20)

size_t sl_frames_read_at(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static void push(struct sl_frames *frames, struct sl_zstd_frame frame)
{
	if (frames->count == frames->capacity) {
		frames->capacity = frames->capacity ? frames->capacity * 2 : 8;
		frames->frame = sl_memory_must(realloc(frames->frame, frames->capacity * sizeof(*frames->frame)));
	}
	frame.file = frames->number;
	frames->events += frame.kind == SL_FRAME_BLOCK ? frame.count : 0;
	frames->frame[frames->count++] = frame;
}

/* The offset of the next whole index at or after `from`; `size` when there is none. */
static uint64_t search(const struct sl_frames *frames, uint64_t from, uint64_t size)
{
	uint8_t *buffer = sl_memory_must(malloc(SEARCH_BYTES));
	uint64_t found = size;
	size_t want = 4096; /* search in small steps at first: the next index may be near */

	for (; found == size && from + sizeof(struct sl_frame_index) <= size;
	     want = want * 4 < SEARCH_BYTES ? want * 4 : SEARCH_BYTES) {
		/* Skip holes of the file, which may be of any size */
		off_t data = lseek(frames->fd, (off_t)from, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			break;
		from = data > (off_t)from ? (uint64_t)data : from;

		size_t got = sl_frames_read_at(frames->fd, buffer, want, from);
		uint32_t magic = SL_FRAME_MAGIC;
		uint8_t *at = buffer;

		if (got < sizeof(struct sl_frame_index))
			break;
		while ((at = memmem(at, (size_t)(buffer + got - at), &magic, sizeof(magic)))) {
			if (sl_frame_index_valid(at, (size_t)(buffer + got - at))) {
				found = from + (uint64_t)(at - buffer);
				break;
			}
			at++;
		}
		from += got - (sizeof(struct sl_frame_index) - 1);
	}
	free(buffer);
	return found;
}

/* An index is damaged: is the frame behind it whole?  Its compressed size, or 0. */
static uint32_t whole_frame(const struct sl_frames *frames, uint64_t offset, uint64_t limit)
{
	uint64_t room = limit > offset ? limit - offset : 0;
	size_t size = room < FRAME_MAX ? (size_t)room : FRAME_MAX, got, whole;
	uint8_t *bytes;

	if (!size)
		return 0;
	bytes = sl_memory_must(malloc(size));
	got = sl_frames_read_at(frames->fd, bytes, size, offset);
	whole = ZSTD_findFrameCompressedSize(bytes, got);
	if (got < 4 || sl_load_le(bytes, 4) != ZSTD_MAGICNUMBER || ZSTD_isError(whole))
		whole = 0;
	free(bytes);
	return (uint32_t)whole;
}

/* Goes from a damaged index to the next good one and reports the bytes between. */
static uint64_t resynchronise(struct sl_frames *frames, uint64_t offset, uint64_t size, struct sl_damage *damage)
{
	uint64_t next = search(frames, offset + 1, size);
	uint64_t inside = offset + sizeof(struct sl_frame_index);
	uint32_t compressed = whole_frame(frames, inside, next);

	if (compressed && inside + compressed == next) {
		push(frames, (struct sl_zstd_frame){.offset = inside, .compressed = compressed});
		sl_damage_note(damage, frames->path, "offset %llu: index is damaged, its frame is whole",
			       (unsigned long long)offset);
		return next;
	}
	sl_damage_add(damage, frames->path, (int64_t)offset,
		      next == size ? "the last %llu bytes are no frame" : "%llu bytes are no frame; reading goes on behind them",
		      (unsigned long long)(next - offset));
	return next;
}

/* What is reported of a frame that is cut short; freed by the caller.  index NULL: it is cut inside its index. */
static char *torn_text(const struct sl_frames *frames, const struct sl_frame_index *index)
{
	char before[SL_FORMAT_BYTES], inside[SL_FORMAT_BYTES];

	if (!index)
		return sl_memory_print("the file ends inside an index");
	sl_format_count(before, frames->events);
	if (index->kind == SL_FRAME_BLOCK)
		return sl_memory_print("frame is torn; %s events before it were read, %s were in it", before,
				       sl_format_count(inside, index->count));
	return sl_memory_print("frame is torn; %s events before it were read", before);
}

static void say_torn(struct sl_frames *frames, uint64_t offset, const struct sl_frame_index *index, struct sl_damage *damage)
{
	char *text = torn_text(frames, index);

	sl_damage_add(damage, frames->path, (int64_t)offset, "%s", text);
	frames->torn_events += index->kind == SL_FRAME_BLOCK ? index->count : 0;
	free(text);
}

static void leave_unfinished(struct sl_frames *frames, uint64_t offset, const struct sl_frame_index *index)
{
	free(frames->unfinished);
	frames->unfinished = torn_text(frames, index);
	frames->unfinished_at = offset;
	frames->unfinished_events = index && index->kind == SL_FRAME_BLOCK ? index->count : 0;
}

static void scan(struct sl_frames *frames, uint64_t size, struct sl_damage *damage)
{
	struct sl_frame_index index;
	uint64_t offset = frames->scanned;

	/* Bytes at the end that are not a whole frame may become one: `scanned` stays before them. */
	for (; offset < size; frames->scanned = offset < size ? offset : frames->scanned) {
		size_t got = sl_frames_read_at(frames->fd, &index, sizeof(index), offset);
		uint64_t inside = offset + sizeof(index);

		if (got < sizeof(index)) {
			leave_unfinished(frames, offset, NULL);
			return;
		}
		if (!sl_frame_index_valid(&index, got) || index.compressed > FRAME_MAX) {
			offset = resynchronise(frames, offset, size, damage);
			continue;
		}
		if (index.compressed > size - inside) {
			uint64_t next = search(frames, inside, size);

			if (next == size)
				leave_unfinished(frames, offset, &index);
			else
				say_torn(frames, offset, &index, damage);
			offset = next;
			continue;
		}
		push(frames, (struct sl_zstd_frame){.offset = inside,
						    .compressed = index.compressed,
						    .count = index.count,
						    .thread = index.thread,
						    .kind = (uint16_t)index.kind,
						    .first = index.first,
						    .next = index.next,
						    .begin_ns = index.begin_ns,
						    .end_ns = index.end_ns});
		offset = inside + index.compressed;
		frames->scanned = offset;
	}
}

void sl_frames_grow(struct sl_frames *frames)
{
	uint64_t torn_events = frames->torn_events;
	struct sl_damage unsaid = {0};
	struct stat st;

	if (!fstat(frames->fd, &st) && (uint64_t)st.st_size > frames->scanned)
		scan(frames, (uint64_t)st.st_size, &unsaid);
	frames->torn_events = torn_events;
	sl_damage_free(&unsaid);
}

void sl_frames_forget(struct sl_frames *frames)
{
	size_t kept_count = 0;

	for (size_t i = 0; i < frames->count; i++)
		if (frames->frame[i].compressed)
			frames->frame[kept_count++] = frames->frame[i];
	frames->count = kept_count;
}

bool sl_frames_open(struct sl_frames *frames, const char *path, uint16_t number, struct sl_damage *damage)
{
	struct stat st;

	*frames = (struct sl_frames){.number = number, .fd = sl_paths_open_regular(path, &st)};
	if (frames->fd < 0)
		return false;
	frames->path = strdup(path);
	frames->owner = st.st_uid;
	frames->disk_bytes = sl_budget_size(frames->fd);
	scan(frames, (uint64_t)st.st_size, damage);
	return true;
}

void sl_frames_close(struct sl_frames *frames)
{
	sl_frames_rest(frames);
	free(frames->path);
	free(frames->unfinished);
	free(frames->frame);
	*frames = (struct sl_frames){.fd = -1};
}

void sl_frames_rest(struct sl_frames *frames)
{
	if (frames->fd >= 0)
		close(frames->fd);
	frames->fd = -1;
}

void sl_frames_wake(struct sl_frames *frames)
{
	struct stat st;

	if (frames->fd < 0)
		frames->fd = sl_paths_open_regular(frames->path, &st);
}

/* For at most CONTENT_MAX. */
static void make_room(uint8_t **buffer, size_t *capacity, size_t bytes)
{
	if (*capacity >= bytes)
		return;
	*buffer = sl_memory_must(realloc(*buffer, bytes));
	*capacity = bytes;
}

/* For frames that do not say their content's size: grow the buffer until it fits. */
static size_t inflate_unsized(struct sl_inflate *inflate, size_t compressed)
{
	size_t capacity = inflate->out_capacity ? inflate->out_capacity : 1u << 20, got;

	for (;; capacity *= 2) {
		if (capacity > CONTENT_MAX)
			return (size_t)-1;
		make_room(&inflate->out, &inflate->out_capacity, capacity);
		got = sl_compress_back(inflate->out, inflate->out_capacity, inflate->in, compressed);
		if (!ZSTD_isError(got) || ZSTD_getErrorCode(got) != ZSTD_error_dstSize_tooSmall)
			return got;
	}
}

bool sl_frame_read(struct sl_inflate *inflate, const struct sl_frames *frames, const struct sl_zstd_frame *frame,
		   struct sl_damage *damage)
{
	unsigned long long content;
	size_t got;

	make_room(&inflate->in, &inflate->in_capacity, frame->compressed);
	got = sl_frames_read_at(frames->fd, inflate->in, frame->compressed, frame->offset);
	if (got < frame->compressed) {
		if (damage)
			sl_damage_add(damage, frames->path, (int64_t)frame->offset, "the file has shrunk");
		return false;
	}
	content = ZSTD_getFrameContentSize(inflate->in, got);
	if (content == ZSTD_CONTENTSIZE_UNKNOWN) {
		got = inflate_unsized(inflate, frame->compressed);
	} else if (content > CONTENT_MAX) { /* an error is the largest number */
		got = (size_t)-1;
	} else {
		make_room(&inflate->out, &inflate->out_capacity, content + 1);
		got = sl_compress_back(inflate->out, inflate->out_capacity, inflate->in, frame->compressed);
	}
	if (ZSTD_isError(got)) {
		if (damage)
			sl_damage_add(damage, frames->path, (int64_t)frame->offset, "frame does not open (%s)%s",
				      got == (size_t)-1 ? "size" : ZSTD_getErrorName(got),
				      frame->kind == SL_FRAME_BLOCK ? ", its events are lost" : "");
		return false;
	}
	inflate->bytes = got;
	return true;
}

void sl_inflate_free(struct sl_inflate *inflate)
{
	free(inflate->in);
	free(inflate->out);
	*inflate = (struct sl_inflate){0};
}
