/* SPDX-License-Identifier: MIT */
#include "agent/file/file.h"

#include <sched.h>

#define MAP_MAX		 (64u << 10)
#define TRIES_MAX	 1000				  /* while another thread makes the file longer */
#define CUT_ROOM	 192				  /* at a segment's end: for the note that definitions are missing */
#define PLACE(index, at) ((uint64_t)(index) << 32 | (at)) /* in the log, as in ring->log */

static _Atomic uint64_t *word_at(struct sl_ring *ring, unsigned index, size_t offset)
{
	return (_Atomic uint64_t *)(sl_ring_segment_bytes(ring, index) + offset);
}

/* What is known of the log's end moves on from segment `index`, or in it. */
static void go_on(struct sl_ring *ring, unsigned index, uint64_t to)
{
	uint64_t seen = atomic_load(&ring->log);

	while (seen >> 32 == index && (to >> 32 != index || seen < to) && !atomic_compare_exchange_weak(&ring->log, &seen, to))
		;
}

/*
 * Closes segment `index` at `at` with a mark that names the next one, so that other threads need not wait for the closing one.
 * found: the mark, or what another thread wrote there before.  False: there is no segment, and no thread makes one.
 */
static SL_NOINLINE bool close_segment(struct sl_ring *ring, unsigned index, size_t at, uint64_t *found)
{
	_Atomic uint64_t *word = word_at(ring, index, at);
	uint64_t first = ring->file->segment[index].first + at + 8, mark;
	int next;

	for (unsigned tries = 0; (next = sl_ring_claim_or_grow(ring, SL_SEGMENT_CLAIMED, 0, 0, first)) < 0; tries++) {
		if ((*found = atomic_load(word)))
			return true;
		if (tries == TRIES_MAX || (tries && !atomic_load(&ring->growing)))
			return false;
		sched_yield();
	}
	mark = SL_DEF_WORD((unsigned)next, SL_DEF_END);
	if (atomic_compare_exchange_strong(word, found, mark))
		*found = mark;
	else
		sl_ring_unclaim(ring, (unsigned)next);
	return true;
}

/* room: bytes that stay free in each segment, the mark included */
static bool append(struct sl_ring *ring, const void *map, size_t bytes, size_t room)
{
	size_t size = SL_DEF_SIZE(bytes);
	uint64_t place = atomic_load(&ring->log);

	for (;;) {
		unsigned index = (unsigned)(place >> 32);
		size_t at = (uint32_t)place;
		_Atomic uint64_t *word = word_at(ring, index, at);
		uint64_t found = 0;

		if (at + size + room > SL_SEGMENT_BYTES) {
			found = atomic_load(word);
			if (!found && !close_segment(ring, index, at, &found))
				return false;
		} else if (atomic_compare_exchange_strong(word, &found, SL_DEF_WORD(bytes, SL_DEF_WRITING))) {
			memcpy((void *)(word + 1), map, bytes);
			atomic_store_explicit(word, SL_DEF_WORD(bytes, SL_DEF_DONE), memory_order_release);
			go_on(ring, index, PLACE(index, at + size));
			return true;
		}
		place += SL_DEF_SIZE(found >> 8);
		if ((found & 0xff) == SL_DEF_END) {
			place = PLACE(found >> 8, 0);
			sl_ring_open_log(ring, (unsigned)(found >> 8));
			go_on(ring, index, place);
		}
	}
}

/* With signals blocked, since a record that is never finished would end the log for all threads.  room: as append's. */
static bool publish(struct sl_definition *map, size_t room)
{
	struct sl_ring *ring = sl_agent->ring;
	struct sl_mute mute;
	uint32_t whole = 0;
	bool done;

	if (!ring || !ring->file || !sl_definition_end(map) || map->pack.used > MAP_MAX)
		return false;
	sl_agent_await_exec();
	mute = sl_mute_begin();
	atomic_fetch_add(&ring->defs_users, 1);
	done = append(ring, map->pack.bytes, map->pack.used, room);
	atomic_fetch_sub(&ring->defs_users, 1);
	if (!done)
		atomic_compare_exchange_strong(&ring->log_cut, &whole, 1);
	sl_mute_end(&mute);
	return done;
}

bool sl_define_publish(struct sl_definition *map)
{
	return publish(map, 8 + CUT_ROOM);
}

bool sl_define_gap(uint64_t count, uint64_t begin_ns, uint64_t end_ns, const char *why, bool removed)
{
	uint8_t bytes[256];
	struct sl_definition map = sl_definition_gap(bytes, sizeof(bytes), count, begin_ns, end_ns, why, removed);

	return sl_define_publish(&map);
}

void sl_define_note(const char *text)
{
	uint8_t bytes[1024];
	struct sl_definition map = sl_definition_note(bytes, sizeof(bytes), text, sl_agent_now());

	sl_define_publish(&map);
}

void sl_define_cut(void)
{
	uint8_t bytes[CUT_ROOM - 16];
	struct sl_definition map;

	if (atomic_load(&sl_agent->ring->log_cut) != 1)
		return;
	map = sl_definition_note(bytes, sizeof(bytes),
				 "no room was left for definitions: stacks of some calls, or names, are missing", sl_agent_now());
	if (publish(&map, 8))
		atomic_store(&sl_agent->ring->log_cut, 2);
}
