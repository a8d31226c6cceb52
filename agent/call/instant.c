/* SPDX-License-Identifier: MIT */
#include "agent/call/call.h"
#include "agent/file/file.h"

void sl_instant_record(unsigned api, uint32_t label, uint64_t extra, struct sl_instant_details details)
{
	struct sl_agent_thread *thread = &sl_thread;
	struct sl_slot *slot;
	uint64_t seq;

	if (sl_unwound_inside() || !sl_agent_attached())
		return;
	sl_unwound_drop_before_instant(thread);
	do {
		slot = sl_ring_reserve(thread->ring, 1, &seq);
		if (SL_UNLIKELY(!slot))
			return;
		slot->instant.head = sl_slot_head(api, SL_KIND_none, 0, -1);
		slot->instant.time_ns = details.time_ns ? details.time_ns : sl_clock_after(&sl_agent->clock);
		slot->instant.extra = extra;
		slot->instant.address = details.address;
		slot->instant.bytes = details.bytes;
		slot->instant.extra2 = details.numbered;
		slot->instant.label = label;
	} while (SL_UNLIKELY(!sl_ring_publish(thread->ring, slot, seq, SL_SLOT_DONE, false)));
}
