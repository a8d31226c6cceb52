/* SPDX-License-Identifier: MIT */
#include "agent/life/life.h"
#include "agent/file/file.h"

#define LOOK_NS 100000000ull
#define WAIT_NS 2000000000ull /* longest wait for the disk, as at the end; after that no wait until something was written */

/* Waits no more where exec failed meanwhile and the recording goes on. */
static void wait_for_writer(void)
{
	struct sl_agent *agent = sl_agent;
	uint64_t deadline_ns = sl_agent_now() + WAIT_NS;
	uint32_t mine = atomic_fetch_add(&agent->late, 1) + 1, written;

	sl_agent_call_writer(agent);
	while ((int32_t)((written = atomic_load(&agent->late_written)) - mine) < 0 && atomic_load(&agent->finished)) {
		if (sl_agent_now() >= deadline_ns) {
			atomic_store(&agent->stalled, 1);
			return;
		}
		sl_agent_sleep(&agent->late_written, written, LOOK_NS);
	}
}

static SL_NOINLINE void drain_as_writer(void)
{
	struct sl_mute mute = sl_mute_begin(); /* a signal handler's late event would be written in the midst of this */

	sl_writer_drain();
	sl_mute_end(&mute);
}

void sl_late_write(void)
{
	const struct sl_producer *ring = sl_thread.ring;

	if (atomic_load(&sl_agent->finished) != 1 || sl_agent->store->plain || atomic_load(&sl_agent->stalled))
		return;
	atomic_thread_fence(memory_order_seq_cst); /* orders the event before the flag, see sl_store_remove_ring() */
	if (!sl_agent->store->ring_removed && sl_ring_position(ring) - atomic_load(&ring->segment->tail) < SL_SEGMENT_SLOTS / 4)
		return; /* the event is safe in the ring */
	if (sl_thread.writer)
		drain_as_writer();
	else
		wait_for_writer();
}

bool sl_late_serve(bool (*enough)(void))
{
	struct sl_agent *agent = sl_agent;

	/* Does not read `finish`: a program that goes on and ends at once may have set it again before this thread looks. */
	while (atomic_load(&agent->finished) && !enough()) {
		uint32_t wake = atomic_load(&agent->wake), wanted = atomic_load(&agent->late);

		if (wanted == atomic_load(&agent->late_written)) {
			sl_agent_sleep(&agent->wake, wake, LOOK_NS);
			continue;
		}
		sl_writer_drain();
		atomic_store(&agent->late_written, wanted);
		sl_agent_wake(&agent->late_written);
	}
	return !atomic_load(&agent->finished);
}
