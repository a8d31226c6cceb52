/* SPDX-License-Identifier: MIT */
/*
 * What the files of a process do not hold event by event: totals of the blocks that STORMLOG_KEEP left out of the first file
 * (a "checkpoint"), and counts of what a recording did while it slept ("slept").  doc/trace-format.md describes both maps.
 */
#ifndef ANALYZER_TRACE_FOLDED_H
#define ANALYZER_TRACE_FOLDED_H

#include <stdbool.h>

#include "analyzer/base/vector.h"
#include "analyzer/trace/header.h"
#include "analyzer/trace/object.h"

/* What STORMLOG_KEEP left out of the first file: totals of the block events that are not there. */
struct sl_folded_blocks {
	int64_t device;
	uint64_t allocations, allocated_bytes, frees, freed_bytes, peak_allocated, peak_reserved;
};

/* All blocks of the device that lived at the instant are there. */
struct sl_folded_peak {
	int64_t device;
	uint64_t time_ns;
};

struct sl_folded_thread {
	uint64_t thread, next; /* the files had its slots below next */
};

/* What a recording that slept only counted: blocks that came and went, and calls, those of these blocks among them. */
struct sl_slept_blocks {
	unsigned kind; /* ours */
	int64_t device;
	uint64_t blocks, bytes, peak_allocated, peak_reserved; /* the peaks are PyTorch's own */
};

struct sl_slept_calls {
	uint64_t api, calls, failures, bytes, time_ns;
};

struct sl_slept {
	uint64_t ns, until_ns; /* how long in all, and when it last ended */
	uint64_t maps, follow; /* follow: events that were to be written after the maps */
	bool now;	       /* it sleeps, or did when it was killed */
	SL_VECTOR(struct sl_slept_blocks) blocks;
	SL_VECTOR(struct sl_slept_calls) calls;
};

struct sl_folded {
	unsigned through; /* files up to this one are in the first; 0: nothing was folded */
	uint64_t
		until_ns; /* block and range events before it are incomplete, but for the blocks that live on, or lived at a peak */
	SL_VECTOR(struct sl_folded_blocks) blocks;
	SL_VECTOR(struct sl_folded_thread) threads;
	SL_VECTOR(struct sl_folded_peak) peaks;
	struct sl_slept slept;
};

/* The map's rows are added to what is known; rows and cells that are missing count 0. */
void sl_folded_checkpoint(struct sl_folded *folded, const msgpack_object *map);
void sl_folded_slept(struct sl_slept *slept, const struct sl_header *header, const msgpack_object *map);
void sl_folded_free(struct sl_folded *folded);

#endif
