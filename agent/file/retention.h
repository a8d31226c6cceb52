/* SPDX-License-Identifier: MIT */
/*
 * Keeps the files of a process within STORMLOG_KEEP.  The oldest file is folded into file 1.  What stays as it is: calls,
 * definitions, what is known of failures; of blocks the allocations that nothing up to there frees, and what lived at
 * the highest instants (retention_peak.h) with its frees.  What goes: all other events of blocks, and ranges.  Totals of
 * what went are in the checkpoint (doc/trace-format.md).
 *
 * The new file 1 is written beside the old one under a name that no reader takes for a trace, renamed over it, and
 * the folded file removed: killed at any moment, a reader finds every event once.
 *
 * Writer thread only, in pieces of a few milliseconds between its passes over the ring.  Memory, during a fold
 * alone, is 40 bytes and some per address that is live, and for those freed lately, and the same per address and highest instant.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/file/store.h"

/* After fork: forget a parent's fold. */
void sl_retention_prepare(void);

/* The size at which the writer goes on in a new file; UINT64_MAX: never. */
uint64_t sl_retention_file_bytes(uint64_t keep);

/*
 * Begins a fold where one is due, and works at it for about budget_ns of processor time, or longer where the files exceed
 * keep.  True: there is more to do.
 */
bool sl_retention_work(struct sl_trace_store *store, uint64_t keep, uint64_t budget_ns);

/* Gives up the fold that is under way; the files are as before it. */
void sl_retention_stop(struct sl_trace_store *store);
