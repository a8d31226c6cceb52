/* SPDX-License-Identifier: MIT */
#include "common/ringfile.h"

#include "common/base.h"

enum sl_slot_shape sl_slot_shape(enum sl_verb verb)
{
	switch (verb) {
	case SL_VERB_BLOCK_ALLOC:
	case SL_VERB_BLOCK_FREE:
	case SL_VERB_BLOCK_OOM:
	case SL_VERB_BLOCK_WAIT:
	case SL_VERB_BLOCK_DONE:
		return SL_SHAPE_BLOCK;
	case SL_VERB_RANGE_PUSH:
	case SL_VERB_RANGE_POP:
	case SL_VERB_RANGE_START:
	case SL_VERB_RANGE_END:
	case SL_VERB_MARK:
	case SL_VERB_PAIR:
	case SL_VERB_NAME:
		return SL_SHAPE_RANGE;
	default:
		return SL_SHAPE_CALL;
	}
}

static void decode_call(struct sl_event *event, const uint64_t *w, const struct sl_slot *second, bool before)
{
	event->duration_ns = w[2];
	if (!before)
		event->time_ns += w[2];
	event->python = (uint32_t)w[5];
	event->native = w[5] >> 32;
	event->result = (int32_t)w[6];
	event->label = w[6] >> 32;
	event->stream = second->words[0];
	event->context = second->words[1];
	event->object = second->words[2];
	event->extra = second->words[3];
	event->extra2 = second->words[4];
	event->caller = second->words[5];
}

SL_HOT void sl_slot_decode(struct sl_event *event, const struct sl_slot *first, const struct sl_slot *second, enum sl_verb verb)
{
	const uint64_t *w = first->words;
	bool in_flight = (atomic_load_explicit(&first->state, memory_order_relaxed) & 3) == SL_SLOT_IN_FLIGHT;

	*event = (struct sl_event){
		.api = w[0] & 0xffff,
		.driver_api = w[0] >> 16 & 0xffff,
		.kind = w[0] >> 32 & 0xff,
		.flags = (w[0] >> 40 & 0xff) | (in_flight ? SL_FLAG_in_flight : 0),
		.device = (int16_t)(w[0] >> 48),
		.time_ns = w[1],
		.address = w[3],
		.bytes = w[4],
	};
	if (sl_slot_shape(verb) == SL_SHAPE_CALL) {
		decode_call(event, w, second, sl_event_verbs[verb].stamped_before || in_flight);
		if (in_flight)
			event->duration_ns = event->result = 0;
		return;
	}
	event->extra = w[2];
	event->extra2 = w[5];
	event->label = (uint32_t)w[6];
	event->python = w[6] >> 32;
	if (atomic_load_explicit(&first->state, memory_order_relaxed) & SL_SLOT_WIDE) {
		event->stream = second->words[0];
		event->object = second->words[2];
	}
}
