/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/vector.h"
#include "common/block.h"
#include "common/tracefile.h"

#define DEFS_BYTES (1u << 20)
#define LEVEL	   1 /* the trace is read once or twice, and removed */

struct thread {
	struct sl_event *events; /* SL_BLOCK_EVENTS */
	size_t count;
	uint64_t next;
};

struct sl_write {
	FILE *out;
	int failed; /* errno */
	ZSTD_CCtx *zstd;
	uint8_t *frame, *block, *defs;
	size_t frame_bytes, defs_used;
	uint32_t defs_count;
	uint64_t log, events;
	SL_VECTOR(struct thread) threads;
};

static void append(struct sl_write *write, struct sl_frame_index index, const void *bytes, size_t size)
{
	size_t packed = ZSTD_compress2(write->zstd, write->frame, write->frame_bytes, bytes, size);

	if (ZSTD_isError(packed))
		sl_memory_must(NULL);
	index.magic = SL_FRAME_MAGIC;
	index.size = sizeof(index) - 8;
	index.compressed = (uint32_t)packed;
	index.check = sl_frame_index_check(&index);
	if (!write->failed && (fwrite(&index, 1, sizeof(index), write->out) != sizeof(index) ||
			       fwrite(write->frame, 1, packed, write->out) != packed))
		write->failed = errno ? errno : EIO;
}

struct sl_write *sl_write_open(FILE *out)
{
	struct sl_write *write = sl_memory_must(calloc(1, sizeof(*write)));
	size_t block_bytes = SL_BLOCK_BYTES(SL_BLOCK_EVENTS) > DEFS_BYTES ? SL_BLOCK_BYTES(SL_BLOCK_EVENTS) : DEFS_BYTES;

	write->out = out;
	write->zstd = sl_memory_must(ZSTD_createCCtx());
	ZSTD_CCtx_setParameter(write->zstd, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(write->zstd, ZSTD_c_compressionLevel, LEVEL);
	write->frame_bytes = ZSTD_compressBound(block_bytes);
	write->frame = sl_memory_must(malloc(write->frame_bytes));
	write->block = sl_memory_must(malloc(SL_BLOCK_BYTES(SL_BLOCK_EVENTS)));
	write->defs = sl_memory_must(malloc(DEFS_BYTES));
	return write;
}

void sl_write_header(struct sl_write *write, struct sl_definition *map)
{
	if (sl_definition_end(map))
		append(write, (struct sl_frame_index){.kind = SL_FRAME_HEADER, .count = 1}, map->pack.bytes, map->pack.used);
	else
		write->failed = write->failed ? write->failed : EMSGSIZE;
}

static void put_defs(struct sl_write *write)
{
	struct sl_frame_index index = {
		.kind = SL_FRAME_DEFS, .first = write->log, .next = write->log + write->defs_used, .count = write->defs_count};

	if (write->defs_count)
		append(write, index, write->defs, write->defs_used);
	write->log += write->defs_used;
	write->defs_count = 0;
	write->defs_used = 0;
}

void sl_write_define(struct sl_write *write, struct sl_definition *map)
{
	if (!sl_definition_end(map) || map->pack.used > DEFS_BYTES)
		return;
	if (write->defs_used + map->pack.used > DEFS_BYTES)
		put_defs(write);
	memcpy(write->defs + write->defs_used, map->pack.bytes, map->pack.used);
	write->defs_used += map->pack.used;
	write->defs_count++;
}

static void put_block(struct sl_write *write, struct thread *thread)
{
	struct sl_frame_index index = {.kind = SL_FRAME_BLOCK,
				       .thread = (uint32_t)(thread - write->threads.item) + 1,
				       .first = thread->next - thread->count,
				       .next = thread->next,
				       .count = (uint32_t)thread->count};
	size_t bytes;

	if (!thread->count)
		return;
	index.begin_ns = thread->events[0].time_ns;
	index.end_ns = thread->events[thread->count - 1].time_ns;
	bytes = sl_block_encode(write->block, index.thread, index.first, index.next, thread->events, index.count);
	append(write, index, write->block, bytes);
	write->events += thread->count;
	thread->count = 0;
}

static struct thread *thread_of(struct sl_write *write, uint32_t number)
{
	while (write->threads.count < number) {
		*SL_PUSH(&write->threads) = (struct thread){.next = 1};
	}
	return &write->threads.item[number - 1];
}

void sl_write_event(struct sl_write *write, uint32_t number, const struct sl_event *event)
{
	struct thread *thread = thread_of(write, number);

	if (!thread->events)
		thread->events = sl_memory_must(malloc(SL_BLOCK_EVENTS * sizeof(*thread->events)));
	thread->events[thread->count++] = *event;
	thread->next++;
	if (thread->count == SL_BLOCK_EVENTS)
		put_block(write, thread);
}

uint64_t sl_write_next(const struct sl_write *write, uint32_t number)
{
	return number <= write->threads.count ? write->threads.item[number - 1].next : 1;
}

bool sl_write_close(struct sl_write *write, uint64_t now_ns)
{
	uint8_t bytes[256];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "footer");
	int failed;

	put_defs(write);
	for (size_t i = 0; i < write->threads.count; i++) {
		put_block(write, &write->threads.item[i]);
		free(write->threads.item[i].events);
	}
	sl_definition_uint(&map, "ns", now_ns);
	sl_definition_text(&map, "how", "snapshot"); /* the file does not tell how its program ended */
	sl_definition_uint(&map, "events", write->events);
	if (sl_definition_end(&map))
		append(write, (struct sl_frame_index){.kind = SL_FRAME_FOOTER, .count = 1}, bytes, map.pack.used);
	if (!write->failed && fflush(write->out))
		write->failed = errno;
	failed = write->failed;
	free(write->threads.item);
	free(write->frame);
	free(write->block);
	free(write->defs);
	ZSTD_freeCCtx(write->zstd);
	free(write);
	errno = failed;
	return !failed;
}
