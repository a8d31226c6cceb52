/* SPDX-License-Identifier: MIT */
/*
 * The 64 bytes that an event waits in until the writer has encoded it.  A call takes two slots.  An instant takes one; a block
 * of a framework takes two if its stream or the size asked for is known.  Only this file and slot.c know which word holds what.
 *
 * The state word of an event's first slot decides whether the event exists.  It is set last, with release order.
 *
 * Room for another field: the last word of a call's second slot is free once the call is done, and bit 3 of the state word is
 * free to say that the field is valid.  Readers that do not know the bit ignore it (doc/add-a-field.md).
 */
#pragma once

#include <stdatomic.h>

#include "common/event.h"

enum sl_slot_state {
	SL_SLOT_EMPTY,	   /* never used, or the second slot of a call */
	SL_SLOT_FILLING,   /* given up before its words were valid; readers pass over it */
	SL_SLOT_IN_FLIGHT, /* the real call is running: the first slot is valid except for time and result */
	SL_SLOT_DONE,
};

#define SL_SLOT_WIDE		       4u /* the event goes on in the next slot */
#define SL_SLOT_SHIFT		       4
#define SL_SLOT_WORD(seq, state, wide) ((uint64_t)(seq) << SL_SLOT_SHIFT | ((wide) ? SL_SLOT_WIDE : 0) | (state))

/*
 * A call's slot holds the time at which it began.  The event's time_ns is that, plus duration_ns for verbs stamped after the
 * call. Words are 64 bits and are read with the width they were written: a load of another width than the store would stall.
 */
struct sl_slot {
	_Atomic uint64_t state; /* SL_SLOT_WORD; slot numbers start at 1 */
	union {
		struct {
			uint64_t head; /* sl_slot_head */
			uint64_t begin_ns, duration_ns;
			uint64_t address, bytes;
			uint64_t stacks; /* python | native << 32 */
			uint64_t result; /* (uint32_t)result | label << 32 */
		} call;
		struct {
			uint64_t stream, context, object, extra, extra2, caller;
			uint64_t claim; /* used by the agent while the call is in flight under --limit */
		} more;			/* the second slot of a call; for a block: its stream and object */
		struct {
			uint64_t head, time_ns;
			uint64_t extra, address, bytes, extra2;
			uint64_t label; /* label | python << 32 */
		} instant;
	};
};
_Static_assert(sizeof(struct sl_slot) == 64, "one cache line");

#define SL_SLOT_FLAGS_AT  40
#define SL_SLOT_DEVICE_AT 48

/* api | driver_api << 16 | kind << 32 | flags << 40 | (uint16_t)device << 48 */
static inline uint64_t sl_slot_head(unsigned api, unsigned kind, unsigned flags, int device)
{
	return api | (uint64_t)(kind | flags << (SL_SLOT_FLAGS_AT - 32) | (uint32_t)device << (SL_SLOT_DEVICE_AT - 32)) << 32;
}

/* The bits that an inner call has set in the head of its outer event.  The end of that event must not lose them. */
static inline uint64_t sl_slot_head_kept(uint64_t head)
{
	return head & (0xffff0000ull | (uint64_t)(SL_FLAG_nested | SL_FLAG_borrowed) << SL_SLOT_FLAGS_AT);
}

static inline uint64_t sl_slot_with_driver_api(uint64_t head, unsigned api)
{
	return (head & ~(uint64_t)0xffff0000) | (uint64_t)api << 16;
}

static inline uint64_t sl_slot_with_device(uint64_t head, int device)
{
	return (head & ~((uint64_t)0xffff << SL_SLOT_DEVICE_AT)) | (uint64_t)(uint16_t)device << SL_SLOT_DEVICE_AT;
}

static inline void sl_slot_add_flags(struct sl_slot *slot, unsigned flags)
{
	slot->call.head |= (uint64_t)flags << SL_SLOT_FLAGS_AT;
}

static inline unsigned sl_slot_flags(const struct sl_slot *slot)
{
	return slot->call.head >> SL_SLOT_FLAGS_AT & 0xff;
}

static inline int sl_slot_device(const struct sl_slot *slot)
{
	return (int16_t)(slot->call.head >> SL_SLOT_DEVICE_AT);
}

static inline unsigned sl_slot_api(const struct sl_slot *slot)
{
	return slot->call.head & 0xffff;
}

/* When the event began, or for an instant when it happened. */
static inline uint64_t sl_slot_begin_ns(const struct sl_slot *slot)
{
	return slot->call.begin_ns;
}

enum sl_slot_shape { SL_SHAPE_CALL, SL_SHAPE_BLOCK, SL_SHAPE_RANGE };
enum sl_slot_shape sl_slot_shape(enum sl_verb verb);

/*
 * The event of a slot whose state word is IN_FLIGHT or DONE; `second` is the slot after it, ignored when the
 * state is not wide.  verb: of the hook row.  An event in flight
 * has flag in_flight, time_ns of its begin, duration_ns, result 0.
 */
void sl_slot_decode(struct sl_event *event, const struct sl_slot *first, const struct sl_slot *second, enum sl_verb verb);
