/* SPDX-License-Identifier: MIT */
/*
 * From a wrapper to the ring.  A wrapper, expanded from a row of hooks/ (hooks.c), does
 *
 *	struct sl_frame frame;
 *	if (!sl_record_open(&frame, api, caller, &inputs))	slot visible as in flight
 *		return real(...);
 *	result = sl_record_refused(&frame) ? oom : real(...);
 *	sl_record_close(&frame, result, ok, &outputs);		slot done
 *
 * Calling thread only.  Nothing here allocates, locks, waits for the disk or changes errno.  The first call
 * of a process that is recorded starts the recording (preload.c); queries and look-ups do not come here.
 *
 * Nesting: a call made inside an outer recorded call of the same class is part of it (no event of its own; the
 * outer event names it as driver_api and takes its injected refusal).  One of another class is an event of
 * its own with the flag nested; a CALL row inside any outer call is part of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/call/call.h"

/* False: the process does not record, or the caller is inside the agent.  Nothing is to be closed then. */
__attribute__((warn_unused_result)) bool sl_record_open(struct sl_frame *frame, unsigned api, const void *caller,
							const struct sl_fields *inputs);

/* True: the call is not made and its result is out of memory (inject, limit). */
static inline bool sl_record_refused(const struct sl_frame *frame)
{
	return frame->refuse;
}

/* ok: the call succeeded, so that outputs were read. */
void sl_record_close(struct sl_frame *frame, int64_t result, bool ok, const struct sl_fields *outputs);

/* A call that was only forwarded was worth an event after all. */
void sl_record_made(unsigned api, const void *caller, int64_t result, struct sl_fields *outputs);

/* A call that was only forwarded has returned out of memory: record it now, with the stack and the thread's device. */
void sl_record_failed(unsigned api, const void *caller, int64_t result);

/* What a framework's allocator was asked for, as events.def has it in `stream` and `object` of a block event. */
struct sl_asked {
	uint64_t stream, object;
	bool captured; /* the stream is being captured */
};

/*
 * An instant: a framework's allocator took or gave back a block.  The stack is taken here.  asked: NULL where it is not known.
 * label: a text's id, what the framework calls it; 0: the range that is open.
 */
/* The same where all is as at the thread's last block event (sl_agent_thread.steady).  False: it is to be recorded as above. */
bool sl_record_block_again(unsigned api, uint64_t address, uint64_t bytes, int device, uint64_t allocated, uint64_t reserved,
			   const struct sl_asked *asked);

void sl_record_block(unsigned api, uint64_t address, uint64_t bytes, int device, uint64_t allocated, uint64_t reserved,
		     const struct sl_asked *asked, uint32_t label);
