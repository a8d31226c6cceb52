/* SPDX-License-Identifier: MIT */
/*
 * The trace file: `rank-RRRRR-PID.msgpack.zst`, and `.000002.msgpack.zst` ... when it continues.  Independent
 * zstd frames; decompressed and joined they are a stream of msgpack maps, each with a "def" that names what it
 * is (doc/trace-format.md).  Before every frame stands a zstd skippable frame with struct sl_frame_index:
 * what the frame holds, without opening it, and where it ends when it is torn.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_TRACE_FORMAT	  "stormlog.trace"
#define SL_TRACE_VERSION  1
#define SL_TRACE_SUFFIX	  ".msgpack.zst"
#define SL_RING_SUFFIX	  ".ring"
#define SL_DRY_UNANSWERED "dry-without-answer" /* in the folder: the last dry run did not end with status 0 and a trace */
#define SL_PACK_SUFFIX	  ".stormlog"	       /* many of them in one file: analyzer/trace/files.h */

/* One of the 16 magic numbers that zstd reserves for skippable frames (RFC 8878, 3.1.2). */
#define SL_FRAME_MAGIC 0x184D2A5Cu

enum sl_frame_kind {
	SL_FRAME_HEADER = 1, /* the header map, first frame of every segment */
	SL_FRAME_DEFS = 2,   /* definitions, samples, OOM contexts, gaps, notes, any number */
	SL_FRAME_BLOCK = 3,  /* one event block */
	SL_FRAME_FOOTER = 4, /* the footer map; more may follow it */
};

/* 64 bytes, little-endian; the frame of `compressed` bytes follows at once. */
struct sl_frame_index {
	uint32_t magic;		   /* SL_FRAME_MAGIC */
	uint32_t size;		   /* bytes after this member: sizeof(struct sl_frame_index) - 8 */
	uint32_t kind;		   /* enum sl_frame_kind */
	uint32_t thread;	   /* blocks: thread id of the trace (not the system's); else 0 */
	uint64_t first, next;	   /* blocks: slot numbers of the thread's ring held, [first, next); definitions:
				 bytes of the definition log held, as positions since the process began */
	uint32_t count;		   /* blocks: events; else maps */
	uint32_t compressed;	   /* bytes of the zstd frame */
	uint64_t begin_ns, end_ns; /* time span of what is inside, CLOCK_MONOTONIC; 0: none */
	uint64_t check;		   /* sl_frame_index_check of the members above */
};
_Static_assert(sizeof(struct sl_frame_index) == 64, "on disk");

/* FNV-1a over the index up to `check`.  It tells an index from bytes that look like one. */
uint64_t sl_frame_index_check(const struct sl_frame_index *index);

/* True when the bytes at `at` are a whole index with the right check. */
bool sl_frame_index_valid(const void *at, size_t bytes);
