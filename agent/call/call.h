/* SPDX-License-Identifier: MIT */
/* A call on its way through its wrapper: what its row says of it, and what is kept of it on the wrapper's stack. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/gpu/limit.h"
#include "common/slot.h"

#define SL_NO_DEVICE (-1)

/* What a row says of its call: inputs before it, outputs too after success.  Zero: unknown. */
struct sl_fields {
	uint64_t address, bytes, stream, context, object, extra, extra2;
	uint16_t kind, flags;	 /* enum sl_kind, enum sl_flag; read as wide as written, or the load would stall (common/slot.h) */
	int16_t device_plus_one; /* 0: ask the driver, where the verb needs a device; SL_NO_DEVICE: it is on the host */
	bool made;		 /* the call has returned already (sl_record_made) */
	uint16_t api;		 /* another row of the same function, chosen by its arguments; 0: the wrapper's own */
	void *const *more;	 /* `extra` objects of an UNMAP: for each behind the first an event of the ALSO row below */
};

/*
 * Lives on the wrapper's stack; its address shows which calls were left by longjmp.  By the time it is looked at the memory
 * may be the program's again: whatever is read is checked, and only the frame's own call writes to it.
 */
struct sl_frame {
	struct sl_frame *outer;
	struct sl_frame *owner; /* the event that this call is part of; NULL: it is an event of its own */
	uintptr_t check, slot_check;
	struct sl_slot *slot, *second; /* NULL: the call is part of another event, was lost for want of room, or is not recorded */
	uint64_t seq, begin_ns;
	uint16_t api;
	uint8_t class;
	bool inject;		     /* the application's call is to fail */
	bool refuse;		     /* this call is not made, its result is out of memory */
	uint64_t free_bytes;	     /* free memory of the device before code was loaded or a context made; 0: not asked */
	struct sl_limit_claim claim; /* while sl_limit_active */
};
