/* SPDX-License-Identifier: MIT */
/* What a sleeping recording counts instead of writing it, and the `slept` map of these counts.  Writer thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process/hook_rows.h"
#include "common/event.h"

#define SL_ASLEEP_STACK UINT32_MAX /* id of the stack of events that were made asleep; no interpreter's id is so large */
#define SL_ASLEEP_ROWS	256	   /* rows for pairs of kind and device; blocks of further pairs are kept */

struct sl_asleep_counts {
	uint64_t events;				 /* calls that neither begin nor end a block */
	uint64_t begun, begun_bytes, ended, ended_bytes; /* of all blocks, whether kept or counted, settled or not */
	struct {
		uint64_t calls, failures, bytes, time_ns;
	} api[SL_API_COUNT];
	struct {
		uint64_t kind;
		int64_t device;
		uint64_t blocks, bytes;			/* blocks that came and went */
		uint64_t peak_allocated, peak_reserved; /* totals of a framework's allocator, as it reports them */
	} row[SL_ASLEEP_ROWS];
	unsigned rows;
};

void sl_asleep_counts_clear(struct sl_asleep_counts *counts);

void sl_asleep_count_call(struct sl_asleep_counts *counts, const struct sl_event *event);

/* Counts an allocation and its free.  False: there is no row for it, and nothing was counted. */
bool sl_asleep_count_pair(struct sl_asleep_counts *counts, const struct sl_event *made);

/* Notes a framework's totals after one of its blocks. */
void sl_asleep_count_block(struct sl_asleep_counts *counts, const struct sl_event *event);

struct sl_asleep_span {
	uint64_t begin_ns, end_ns;
	const char *why;
	bool wakes;
	uint32_t follow; /* number of events that are written after the map */
};

/* Writes the map into SL_BLOCK_BYTES(SL_BLOCK_EVENTS); returns the bytes used. */
size_t sl_asleep_counts_pack(const struct sl_asleep_counts *counts, uint8_t *bytes, struct sl_asleep_span span);
