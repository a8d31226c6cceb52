/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of torch.cuda.memory._dump_snapshot() in plain records, whichever release wrote it.  Unknown keys are passed over;
 * a key that a file lacks is SL_SNAPSHOT_NONE or 0, as each member says.  The keys are those of
 * torch/csrc/cuda/memory_snapshot.cpp and torch/cuda/memory.py from 2.0 on (doc/snapshot.md has the table).
 *
 * Memory: 40 bytes an event, and what the file has of different texts, frames and stacks.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "analyzer/base/map.h"
#include "analyzer/snapshot/sequences.h"

#define SL_SNAPSHOT_NONE UINT32_MAX

enum sl_snapshot_action {
	SL_SNAPSHOT_OTHER, /* "snapshot", and those that are not known here */
	SL_SNAPSHOT_ALLOC,
	SL_SNAPSHOT_FREE_REQUESTED,
	SL_SNAPSHOT_FREE_COMPLETED,
	SL_SNAPSHOT_SEGMENT_ALLOC,
	SL_SNAPSHOT_SEGMENT_FREE,
	SL_SNAPSHOT_SEGMENT_MAP,
	SL_SNAPSHOT_SEGMENT_UNMAP,
	SL_SNAPSHOT_OOM, /* addr: free bytes of the device; UINT64_MAX: unknown */
};

struct sl_snapshot_event {
	uint64_t addr, size, time_us; /* size: requested, except of oom; time_us 0: unknown */
	uint32_t stack;		      /* index into stacks, SL_SNAPSHOT_NONE */
	uint16_t stream, pool;	      /* indexes into streams and pools; pool SL_SNAPSHOT_NO_POOL: unknown */
	uint8_t action;
	bool outside; /* as in struct sl_snapshot_segment */
};
#define SL_SNAPSHOT_NO_POOL UINT16_MAX

struct sl_snapshot_block {
	uint64_t addr, size, requested; /* requested: the size where the file does not say it */
	uint32_t stack;
	bool active, pending; /* pending: freed, but other streams may still use it */
};

struct sl_snapshot_segment {
	uint64_t addr, size;
	size_t first, count; /* blocks */
	uint32_t stack;
	uint16_t stream, pool;
	int device;
	bool small, expandable;
	bool outside; /* of an export of ours: no memory of PyTorch's allocator */
};

/* The beginning or the end of a range of the profiler: ProfilerStep#3, Optimizer.step#AdamW.step. */
struct sl_snapshot_note {
	uint64_t time_us;
	uint32_t name; /* text */
	int device;
	bool begins;
};

struct sl_snapshot_range {
	size_t first, count;
};

/* Keys that tell the release. */
enum sl_snapshot_key {
	SL_SNAPSHOT_HAS_ADDRESS,     /* of a block */
	SL_SNAPSHOT_HAS_HISTORY,     /* of a block */
	SL_SNAPSHOT_HAS_TIME,	     /* of an event */
	SL_SNAPSHOT_HAS_SETTINGS,    /* of the file */
	SL_SNAPSHOT_HAS_ANNOTATIONS, /* of the file */
	SL_SNAPSHOT_HAS_CONTEXT,     /* compile_context of an event */
	SL_SNAPSHOT_HAS_METADATA,    /* user_metadata of an event */
	SL_SNAPSHOT_HAS_REUSE,	     /* graph_capture_record_stream_reuse of the settings */
	SL_SNAPSHOT_HAS_POOL,	     /* pool_id of an event */
};

#define SL_SNAPSHOT_DIVISIONS 16 /* of roundup_power2_divisions, for 1 MiB to 32 GiB */

struct sl_snapshot {
	SL_VECTOR(struct sl_snapshot_event) events;
	SL_VECTOR(struct sl_snapshot_block) blocks;
	SL_VECTOR(struct sl_snapshot_segment) segments;
	SL_VECTOR(struct sl_snapshot_note) notes;
	SL_VECTOR(struct sl_snapshot_range) traces;
	struct sl_snapshot_range in_segments, in_traces, in_notes; /* those of the snapshot; traces: of each device its events */
	struct sl_map text_ids;
	SL_VECTOR(const char *) texts;
	SL_VECTOR(uint8_t) words;	    /* of each text: its meaning (read.c) */
	struct sl_sequences frames;	    /* function, file (texts), line */
	struct sl_sequences stacks;	    /* frames, innermost first */
	SL_VECTOR(uint64_t) streams, pools; /* pools: upper and lower number of the id */
	uint64_t divisions[SL_SNAPSHOT_DIVISIONS];
	uint64_t max_split; /* bytes; UINT64_MAX: none */
	uint32_t conf;	    /* text of the settings, SL_SNAPSHOT_NONE */
	uint32_t dry;	    /* text: the card of a dry run of ours, SL_SNAPSHOT_NONE */
	bool expandable;    /* set at the end */
	bool whole_sizes;   /* it is our export of a program without PyTorch: no size is rounded */
	bool is_npu;	    /* its stacks are of Ascend's torch_npu */
	/* events and blocks whose action or state is not known here, and the text of the first; SL_SNAPSHOT_NONE */
	uint64_t odd_events, odd_blocks;
	uint32_t odd_action, odd_state;
	unsigned keys; /* 1 << enum sl_snapshot_key */
};

/* True: the file begins as a snapshot does.  It may be packed (input.h). */
bool sl_snapshot_is(FILE *file);

/*
 * Reads the whole file, twice.  progress: called now and then with the bytes of the file that were read, both times together; may
 * be NULL.  False: `why` says what is wrong, and *offset where, in the unpacked file.
 */
bool sl_snapshot_read(struct sl_snapshot *snapshot, FILE *file, void (*progress)(void *context, uint64_t bytes), void *context,
		      char why[160], uint64_t *offset);
void sl_snapshot_free(struct sl_snapshot *snapshot);

const char *sl_snapshot_text(const struct sl_snapshot *snapshot, uint32_t text); /* NULL: none */
