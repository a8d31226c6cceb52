/* SPDX-License-Identifier: MIT */
/*
 * A block: up to SL_BLOCK_EVENTS events of one thread as columns inside one msgpack map.
 *
 *	{"def": "block", "thread": u32, "first": seq, "next": seq, "count": n,
 *	 "columns": {name: [encoding, width, shift, base, bin], ...}}
 *
 * Column i of n values, little-endian, `width` of 0, 1, 2, 4 or 8 bytes each:
 *	encoding 0: value = base + (x << shift), modulo 2^64
 *	encoding 1: x is the zigzag difference from the value before; the first is base (its x is 0)
 *	encoding 2: behind its n values of x, a byte each, the bin has up to 256 values of 8 bytes: value = the x-th of those
 *	encoding 3: x is a bit, the first of eight the least of its byte; behind them the bin has two values of 8 bytes, as with 2
 * Width 0 has an empty bin: encoding 0 then says that every value is base.  `first` and `next` are slot
 * numbers of the thread's ring: the block holds every finished event in [first, next).
 *
 * No allocation, no global state, any thread.
 */
#pragma once

#include "common/event.h"

#define SL_BLOCK_EVENTS 4096
#define SL_BLOCK_BATCH	16

enum sl_encoding { SL_ENCODING_PLAIN, SL_ENCODING_DELTA, SL_ENCODING_FEW, SL_ENCODING_TWO };

/*
 * Bytes that hold any block of up to `count` events, and its columns before they are narrowed; each of those lies behind what is
 * already written.  A multiple of 8.
 */
#define SL_BLOCK_BYTES(count) ((size_t)(count)*8 * (SL_FIELD_COUNT + 1) + 64 * SL_FIELD_COUNT + 256)

/* A block in the making.  The columns lie in `bytes`, since this may run on a thread whose whole stack is 16 KiB. */
struct sl_block_columns {
	uint8_t *bytes;
	unsigned room, count;
	uint64_t begin_ns, end_ns; /* least and greatest time of its events */
	uint64_t first[SL_FIELD_COUNT], last_ns;
	uint64_t bits
		[SL_FIELD_COUNT]; /* in which a value differs from the first, or from 0 where it is a difference; 0: a constant */
};

/* Begins a block of up to `room` events in `bytes`, which has SL_BLOCK_BYTES(room) bytes aligned to 8. */
void sl_block_begin(struct sl_block_columns *columns, void *bytes, unsigned room);

/* Adds events behind those that are there.  Some at a time, so that they stay in the first-level cache. */
#define SL_BLOCK_CHUNK 64
void sl_block_add(struct sl_block_columns *columns, const struct sl_event *events, unsigned count);

/* Writes the block into `bytes`; there is at least one event.  Returns the bytes written. */
size_t sl_block_end(struct sl_block_columns *columns, uint32_t thread, uint64_t first, uint64_t next);

/* The three in one, of events that lie together. */
size_t sl_block_encode(void *bytes, uint32_t thread, uint64_t first, uint64_t next, const struct sl_event *events, unsigned count);

struct sl_column {
	const uint8_t *data;   /* borrowed from the decoded bytes; NULL when width is 0 */
	const uint8_t *values; /* SL_ENCODING_FEW, SL_ENCODING_TWO: behind the data, 8 bytes each */
	uint64_t base;
	uint8_t encoding, width, shift;
};

/* A decoded block: borrows the bytes it was decoded from. */
struct sl_block {
	uint32_t thread;
	uint64_t first, next;
	unsigned count, unknown_columns;
	struct sl_column columns[SL_FIELD_COUNT];

	/* position of sl_block_next, and a few events around it, which are read together */
	unsigned at, varying_count;
	uint8_t varying[SL_FIELD_COUNT];
	struct sl_event batch[SL_BLOCK_BATCH];
};

/*
 * Decodes a map whose "def" is "block".  Columns with unknown names are skipped and counted; absent columns read as 0 (device
 * as -1).  Returns NULL, or a static text that says what is wrong with it.
 */
const char *sl_block_decode(struct sl_block *block, const void *bytes, size_t size);

void sl_block_fill(struct sl_block *block); /* reads the next batch */

/* The next event, valid until the following call; NULL at the end. */
static inline struct sl_event *sl_block_next(struct sl_block *block)
{
	if (block->at == block->count)
		return NULL;
	if (block->at % SL_BLOCK_BATCH == 0)
		sl_block_fill(block);
	return &block->batch[block->at++ % SL_BLOCK_BATCH];
}

/* The event that sl_block_next will return, if it has been read already; else NULL. */
static inline const struct sl_event *sl_block_peek(const struct sl_block *block)
{
	return block->at < block->count && block->at % SL_BLOCK_BATCH ? &block->batch[block->at % SL_BLOCK_BATCH] : NULL;
}
