/* SPDX-License-Identifier: MIT */
/*
 * Keeps the files of a process within STORMLOG_KEEP, by folding the oldest file into file 1. Kept are calls, definitions and what
 * is known of failures; allocations that nothing in these files frees; and what was live at the highest instants
 * (peaks.h), with its frees.  Left out are all other events of blocks, and ranges; their totals are in the checkpoint
 * (doc/trace-format.md).
 *
 * The new file 1 is written beside the old one under a name that no reader takes for a trace, renamed over it, and the folded file
 * is removed.  So a reader finds every event once, whenever the process is killed.
 *
 * Writer thread only, in pieces of a few milliseconds between its passes over the ring.  Memory, only during a fold: about 40 bytes
 * for each address that is live or was freed lately, and as much again for each highest instant.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/file/store.h"

/* After fork: forgets the parent's fold. */
void sl_retention_prepare(void);

/* The size at which the writer goes on in a new file; UINT64_MAX: never. */
uint64_t sl_retention_file_bytes(uint64_t keep);

/*
 * Begins a fold if one is due, and works at it for about budget_ns of processor time, or longer if the files exceed `keep`. True:
 * there is more to do.
 */
bool sl_retention_work(struct sl_trace_store *store, uint64_t keep, uint64_t budget_ns);

/* Gives up the current fold; the files are as before it. */
void sl_retention_stop(struct sl_trace_store *store);
