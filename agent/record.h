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
#ifndef AGENT_RECORD_H
#define AGENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/gpu/limit.h"
#include "common/event.h"

#define SL_NO_DEVICE (-1)

/* What a row says of its call: inputs before it, outputs too after success.  Zero: unknown. */
struct sl_fields {
	uint64_t addr, size, stream, context, object, extra, extra2;
	uint16_t kind, flags;	 /* enum sl_kind, enum sl_flag; of two bytes each: read together they would wait for their stores */
	int16_t device_plus_one; /* 0: ask the driver, where the verb needs a device; SL_NO_DEVICE: it is on the host */
	uint16_t api;		 /* another row of the same function, chosen by its arguments; 0: the wrapper's own */
	void *const *more;	 /* `extra` objects of an UNMAP: for each behind the first an event of the ALSO row below */
};

/*
 * On the wrapper's stack; its address tells calls that were left by longjmp.  It may be the program's memory again by the
 * time it is looked at: what is read of it is checked, and nobody but its own call writes to it.
 */
struct sl_frame {
	struct sl_frame *outer;
	struct sl_frame *owner; /* the event this call is part of; NULL: it is one of its own */
	uintptr_t check, slot_check;
	struct sl_slot *slot, *second; /* NULL: part of another event, lost for want of room, or not recorded */
	uint64_t seq, begin_ns;
	uint16_t api;
	uint8_t class;
	bool inject;	     /* the application's call is to fail */
	bool refuse;	     /* this call is not made, its result is out of memory */
	uint64_t free_bytes; /* of the device before code was loaded or a context made; 0: not asked; of other calls nothing */
	struct sl_limit_claim claim; /* while sl_limit_active */
};

/* False: the process does not record, or the caller is inside the agent.  Nothing is to be closed then. */
__attribute__((warn_unused_result)) bool sl_record_open(struct sl_frame *frame, unsigned api, const void *caller,
							const struct sl_fields *inputs);

/* The call is to fail with the family's out-of-memory code instead of being made (inject, limit). */
static inline bool sl_record_refused(const struct sl_frame *frame)
{
	return frame->refuse;
}

/* ok: the call succeeded, so that outputs were read. */
void sl_record_close(struct sl_frame *frame, int64_t result, bool ok, const struct sl_fields *outputs);

/* In a forked child: the calls that are open are the parent's, in a ring that is not ours. */
void sl_record_forget(struct sl_thread *thread);

/* The thread ends: calls that are open have been left. */
void sl_record_end(struct sl_thread *thread);

/* What was asked of a framework's allocator, as events.def has it in `stream` and `object` of a block event. */
struct sl_asked {
	uint64_t stream, object;
};

/* One-stamp events.  Block: a framework's allocator; stack and label are taken here.  asked: NULL where it is not known. */
void sl_record_block(unsigned api, uint64_t addr, uint64_t size, int device, uint64_t allocated, uint64_t reserved,
		     const struct sl_asked *asked);
/* What NCCL says of a range of its own; 0: nothing. */
struct sl_collective {
	uint64_t communicator, bytes;
};
void sl_record_range(unsigned api, uint32_t label, uint64_t extra, struct sl_collective collective);

/* This thread is inside the agent: hooked calls are forwarded and not recorded until the matching leave. */
#define sl_record_enter() sl_record_enter_at((uintptr_t)__builtin_frame_address(0))
void sl_record_enter_at(uintptr_t frame);
void sl_record_leave(void);

/* Not true of work that a signal handler left by longjmp: that is forgotten here. */
#define sl_record_inside() (SL_UNLIKELY(sl_thread.inside) && sl_record_inside_at((uintptr_t)__builtin_frame_address(0)))
bool sl_record_inside_at(uintptr_t frame);

#endif
