/* SPDX-License-Identifier: MIT */
/*
 * Moments of a replay: who held how much at that time, and the run's marks.  Moments are spread evenly over the run in bounded
 * memory. Each lies on a grid of time and is exact there; when there are too many, every second one is dropped and the grid
 * gets twice as wide.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyzer/base/vector.h"

#define SL_MOMENTS_MAX	      64
#define SL_MOMENT_SITES_MAX   512 /* the largest; the rest is summed in rest_bytes */
#define SL_MOMENT_DEVICES_MAX 16
#define SL_MARKS_MAX	      256
#define SL_STEPS_MAX	      1024
#define SL_PIECES_MAX	      20000

struct sl_held {
	uint32_t site;
	uint64_t bytes, blocks;
};

struct sl_moment {
	uint64_t time_ns;
	uint64_t known_bytes; /* of all devices */
	struct sl_held *held; /* largest first */
	uint32_t count;
	uint64_t rest_bytes, rest_blocks;
	uint64_t *unused_bytes; /* bytes kept unused by PyTorch, by device ordinal; NULL: none */
	uint32_t unused_count;	/* at most SL_MOMENT_DEVICES_MAX */
	uint64_t *graph_bytes;	/* of them in private pools of CUDA graphs, likewise */
	uint32_t graph_count;
};

/* PyTorch's segments and their blocks at a moment, both sorted by address. */
struct sl_piece {
	uint64_t address, bytes;
	uint32_t site;
};

struct sl_segments {
	uint64_t time_ns;
	int device;
	struct sl_piece *segment, *block;
	uint32_t segment_count, block_count;
	uint32_t left_out; /* blocks that did not fit */
};

enum sl_mark_kind { SL_MARK_CONTEXT, SL_MARK_MODULE, SL_MARK_RESET };

struct sl_mark {
	uint64_t time_ns, bytes; /* bytes: free memory that the marked call took, 0: unknown */
	enum sl_mark_kind kind;
	int device;
	uint16_t api;
};

struct sl_step {
	uint64_t time_ns, number;
};

/* When entries of one label began; only every `stride`th is kept. */
struct sl_steps {
	struct sl_step *item;
	uint32_t count, stride, skipped;
};

struct sl_moments {
	uint64_t next_ns, width_ns; /* 0: not begun */
	struct sl_moment *moment;   /* at most SL_MOMENTS_MAX */
	size_t count, capacity;
	struct sl_segments largest;	      /* at the moment with the most known memory, among those with segments */
	struct sl_segments at_oom;	      /* at the first out-of-memory error */
	SL_VECTOR(struct sl_segments) at_end; /* at the end, for each device with segments; made by sl_replay_rest */
	uint64_t largest_bytes;
	SL_VECTOR(struct sl_mark) marks; /* the first SL_MARKS_MAX */
};
