/* SPDX-License-Identifier: MIT */
/*
 * What a reader must know of the events that a fold (retention.h) leaves out of the trace: the totals of block events by device,
 * the time up to which they are left out, and for each thread the first slot whose events are still in the ring.  One map behind
 * the folded events (doc/trace-format.md).  Writer thread only.
 */
#pragma once

#include "agent/file/peaks.h"
#include "common/event.h"
#include "common/definition.h"
#include "common/unpack.h"

#define SL_CHECKPOINT_DEVICES 64 /* devices with block events; further ones share the last row */

struct sl_checkpoint {
	struct sl_checkpoint_totals {
		int64_t device;
		uint64_t allocations, allocated_bytes, frees, freed_bytes, peak_allocated, peak_reserved;
	} totals[SL_CHECKPOINT_DEVICES];
	unsigned devices;
	uint64_t until_ns; /* time of the last event that may have been left out */
	uint64_t log_next;
	uint64_t *thread_next; /* by thread; mapped by the caller that folds */
	uint32_t threads;
};

static inline void sl_checkpoint_raise(uint64_t *known, uint64_t value)
{
	*known = value > *known ? value : *known;
}

/* Counts the event as left out (sign 1), or as not left out after all (-1). */
void sl_checkpoint_count(struct sl_checkpoint *checkpoint, const struct sl_event *event, unsigned verb, int sign);

/* Continues counting from the map of an earlier fold. */
void sl_checkpoint_take(struct sl_checkpoint *checkpoint, struct sl_unpack map);

/* Writes the map, for files up to `through`, with the peaks that lie before until_ns; its bytes, 0: it does not fit. */
size_t sl_checkpoint_pack(const struct sl_checkpoint *checkpoint, void *bytes, size_t size, unsigned through,
			  const struct sl_peak *peak, unsigned peaks);
