/* SPDX-License-Identifier: MIT */
/*
 * What a process's files do not hold event by event: totals of blocks that STORMLOG_KEEP left out of the first file
 * ("checkpoint"), and counts of what a recording did while it slept ("slept").  doc/trace-format.md describes both maps.
 */
#pragma once

#include <stdbool.h>

#include "analyzer/base/vector.h"
#include "analyzer/trace/header.h"
#include "analyzer/trace/object.h"

/* Totals of the block events that STORMLOG_KEEP left out of the first file. */
struct sl_totals_blocks {
	int64_t device;
	uint64_t allocations, allocated_bytes, frees, freed_bytes, peak_allocated, peak_reserved;
};

/* All blocks of the device that lived at this instant are in the file. */
struct sl_totals_peak {
	int64_t device;
	uint64_t time_ns;
};

struct sl_totals_thread {
	uint64_t thread, next; /* the files had the thread's slots below next */
};

/* What a sleeping recording only counted: blocks that came and went, and calls (those of such blocks included). */
struct sl_slept_blocks {
	unsigned kind; /* enum sl_kind */
	int64_t device;
	uint64_t blocks, bytes, peak_allocated, peak_reserved; /* the peaks are those that PyTorch reported */
};

struct sl_slept_calls {
	uint64_t api, calls, failures, bytes, time_ns;
};

struct sl_slept {
	uint64_t ns, until_ns; /* total time asleep, and when it last ended */
	uint64_t maps, follow; /* follow: number of events written after the maps */
	uint64_t now_ns;       /* since when it sleeps, or slept when it was killed; 0: awake */
	SL_VECTOR(struct sl_slept_blocks) blocks;
	SL_VECTOR(struct sl_slept_calls) calls;
};

struct sl_folded {
	unsigned through; /* files up to this one are folded into the first; 0: none */
	uint64_t
		/* Before it, block and range events are incomplete except for blocks that lived on, or lived at a peak */
		until_ns;
	SL_VECTOR(struct sl_totals_blocks) blocks;
	SL_VECTOR(struct sl_totals_thread) threads;
	SL_VECTOR(struct sl_totals_peak) peaks;
	struct sl_slept slept;
};

/* Adds the map's rows to what is known; missing rows and cells count as 0. */
void sl_totals_checkpoint(struct sl_folded *folded, const msgpack_object *map);
void sl_totals_slept(struct sl_slept *slept, const struct sl_header *header, const msgpack_object *map);
void sl_totals_free(struct sl_folded *folded);
