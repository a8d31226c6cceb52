/* SPDX-License-Identifier: MIT */
#include "agent/file/define.h"

#include <sched.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/mute.h"
#include "agent/file/ring.h"

#define MAP_MAX	  (64u << 10)
#define SPINS_MAX 1000

static _Atomic uint64_t *word_at(struct sl_ring *ring, unsigned index, size_t offset)
{
	return (_Atomic uint64_t *)(sl_ring_segment_bytes(ring, index) + offset);
}

/* This thread has closed segment `index` at `offset`; the log goes on in a fresh one. */
static bool continue_log(struct sl_ring *ring, unsigned index, size_t offset)
{
	uint64_t position = ring->file->segment[index].first + offset + 8;
	int fresh = sl_ring_claim(ring, SL_SEGMENT_DEFS, 0, 0, position);

	if (fresh < 0) {
		atomic_store(word_at(ring, index, offset), 0); /* the next thread tries again */
		return false;
	}
	atomic_store(&ring->defs_hint, 0);
	atomic_store(&ring->defs, (uint32_t)fresh);
	return true;
}

static bool append(struct sl_ring *ring, const void *map, size_t bytes)
{
	size_t size = SL_DEF_SIZE(bytes);
	unsigned index = atomic_load(&ring->defs), spins = 0;
	size_t at = atomic_load(&ring->defs_hint);

	for (;;) {
		_Atomic uint64_t *word = word_at(ring, index, at);
		bool fits = at + size + 8 <= SL_SEGMENT_BYTES; /* there is always room for the end mark */
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(word, &found,
						   fits ? SL_DEF_WORD(bytes, SL_DEF_WRITING) : SL_DEF_WORD(0, SL_DEF_END))) {
			if (!fits) {
				if (!continue_log(ring, index, at))
					return false;
			} else {
				memcpy((void *)(word + 1), map, bytes);
				atomic_store_explicit(word, SL_DEF_WORD(bytes, SL_DEF_DONE), memory_order_release);
				atomic_store_explicit(&ring->defs_hint, (uint32_t)(at + size), memory_order_relaxed);
				return true;
			}
		} else if ((found & 0xff) != SL_DEF_END) {
			at += SL_DEF_SIZE(found >> 8);
			continue;
		}
		/*
		 * The thread that closed the segment is about to name the next one.  It may be the thread that our signal
		 * handler interrupted, so the wait is bounded.
		 */
		while (atomic_load(&ring->defs) == index)
			if (++spins > SPINS_MAX)
				return false;
			else
				sched_yield();
		index = atomic_load(&ring->defs);
		at = 0;
	}
}

bool sl_define_publish(struct sl_definition *map)
{
	struct sl_ring *ring = sl_agent->ring;
	struct sl_mute mute;
	bool done;

	if (!ring || !ring->file || !sl_definition_end(map) || map->pack.used > MAP_MAX)
		return false;
	sl_agent_await_exec();
	/* with signals blocked, since a record that is never finished would end the log for all threads */
	mute = sl_mute_begin();
	atomic_fetch_add(&ring->defs_users, 1);
	done = append(ring, map->pack.bytes, map->pack.used);
	atomic_fetch_sub(&ring->defs_users, 1);
	sl_mute_end(&mute);
	return done;
}

bool sl_define_gap(uint64_t count, uint64_t begin_ns, uint64_t end_ns, const char *why)
{
	uint8_t bytes[256];
	struct sl_definition map = sl_definition_gap(bytes, sizeof(bytes), count, begin_ns, end_ns, why);

	return sl_define_publish(&map);
}

void sl_define_note(const char *text)
{
	uint8_t bytes[1024];
	struct sl_definition map = sl_definition_note(bytes, sizeof(bytes), text, sl_agent_now());

	sl_define_publish(&map);
}
