/* SPDX-License-Identifier: MIT */
#include "common/slot.h"

enum sl_slot_shape sl_slot_shape(enum sl_verb verb)
{
	switch (verb) {
	case SL_VERB_BLOCK_ALLOC:
	case SL_VERB_BLOCK_FREE:
	case SL_VERB_BLOCK_OOM:
	case SL_VERB_BLOCK_WAIT:
	case SL_VERB_BLOCK_DONE:
	case SL_VERB_BLOCK_DROP:
	case SL_VERB_BLOCK_FRACTION:
	case SL_VERB_BLOCK_POOL:
		return SL_SHAPE_BLOCK;
	case SL_VERB_RANGE_PUSH:
	case SL_VERB_RANGE_POP:
	case SL_VERB_RANGE_START:
	case SL_VERB_RANGE_END:
	case SL_VERB_MARK:
	case SL_VERB_PAIR:
	case SL_VERB_NAME:
	case SL_VERB_HOLD:
	case SL_VERB_BLOCK_TENSOR:
		return SL_SHAPE_RANGE;
	default:
		return SL_SHAPE_CALL;
	}
}

static void decode_call(struct sl_event *event, const struct sl_slot *first, const struct sl_slot *second, bool before)
{
	event->duration_ns = first->call.duration_ns;
	if (!before)
		event->time_ns += event->duration_ns;
	event->python = (uint32_t)first->call.stacks;
	event->native = first->call.stacks >> 32;
	event->result = (int32_t)first->call.result;
	event->label = first->call.result >> 32;
	event->stream = second->more.stream;
	event->context = second->more.context;
	event->object = second->more.object;
	event->extra = second->more.extra;
	event->extra2 = second->more.extra2;
	event->caller = second->more.caller;
}

SL_HOT void sl_slot_decode(struct sl_event *event, const struct sl_slot *first, const struct sl_slot *second, enum sl_verb verb)
{
	bool in_flight = (atomic_load_explicit(&first->state, memory_order_relaxed) & 3) == SL_SLOT_IN_FLIGHT;
	uint64_t head = first->call.head;

	event->api = head & 0xffff;
	event->driver_api = head >> 16 & 0xffff;
	event->kind = head >> 32 & 0xff;
	event->flags = sl_slot_flags(first) | (in_flight ? SL_FLAG_in_flight : 0);
	event->device = sl_slot_device(first);
	event->time_ns = sl_slot_begin_ns(first);
	if (sl_slot_shape(verb) == SL_SHAPE_CALL) {
		event->address = first->call.address;
		event->bytes = first->call.bytes;
		decode_call(event, first, second, sl_event_verbs[verb].stamped_before || in_flight);
		if (in_flight)
			event->duration_ns = event->result = 0;
		return;
	}
	event->duration_ns = event->stream = event->context = event->object = event->caller = event->native = 0;
	event->result = 0;
	event->address = first->instant.address;
	event->bytes = first->instant.bytes;
	event->extra = first->instant.extra;
	event->extra2 = first->instant.extra2;
	event->label = (uint32_t)first->instant.label;
	event->python = first->instant.label >> 32;
	if (atomic_load_explicit(&first->state, memory_order_relaxed) & SL_SLOT_WIDE) {
		event->stream = second->more.stream;
		event->object = second->more.object;
	}
}
