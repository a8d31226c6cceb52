/* SPDX-License-Identifier: MIT */
#include "agent/file/late.h"

#include "agent/agent.h"
#include "agent/file/own_stack.h"
#include "agent/file/ring.h"
#include "agent/file/store.h"
#include "agent/file/writer.h"
#include "agent/mute.h"

static _Atomic uint32_t wanted;

static void drain(void)
{
	sl_writer_drain();
}

/* Several threads at once: the one that writes takes the others' events too. */
void sl_late_run(void (*work)(void))
{
	uint32_t seen, expected;

	do {
		expected = 0;
		if (!atomic_compare_exchange_strong(&sl_agent->late, &expected, 1))
			break;
		seen = atomic_load(&wanted);
		sl_own_stack_run(work);
		work = drain;
		atomic_store(&sl_agent->late, 0);
	} while (atomic_load(&wanted) != seen);
}

void sl_late_write(void)
{
	const struct sl_producer *ring = sl_thread.ring;
	struct sl_mute mute;

	if (atomic_load(&sl_agent->finished) != 1)
		return;
	if (!sl_agent->store->ring_removed && sl_ring_position(ring) - atomic_load(&ring->segment->tail) < SL_SEGMENT_SLOTS / 4)
		return; /* it is safe where it is */
	atomic_fetch_add(&wanted, 1);
	mute = sl_mute_begin();
	sl_late_run(drain);
	sl_mute_end(&mute);
}
