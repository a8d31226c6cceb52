/* SPDX-License-Identifier: MIT */
/*
 * There are 256 segments for any number of threads, so the writer takes segments back from idle threads, without their help.
 * It marks the thread's next slot number, which the thread exchanges in one instruction whenever it takes a slot, and makes
 * every thread of the process pass a barrier (membarrier): after that the thread either sees the mark or has overwritten it.
 * Segments of threads that have ended come first.
 */
#include "agent/file/file.h"

#include <linux/membarrier.h>

#define AT_WORK_NS 10000000ull /* the kernel is not asked about a thread that called so recently */
#define ASKED_NS   20000000ull /* time between two rounds of questions, each a system call, while others wait */

static _Atomic int available; /* answer: 0 not asked, 1 yes, -1 no */

static bool barrier(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

static bool is_available(void)
{
	if (!atomic_load(&available))
		atomic_store(&available, barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? 1 : -1);
	return atomic_load(&available) > 0;
}

/* The slot number at which the thread stands if everything before it is in the file; 0: it is not idle. */
static uint64_t idle_at(const struct sl_producer *producer, uint64_t idle_ns, uint64_t now_ns)
{
	uint64_t next = __atomic_load_n(&producer->next, __ATOMIC_ACQUIRE), last_ns;

	if (!next || next & SL_RING_NOWHERE || next != __atomic_load_n(&producer->settled, __ATOMIC_RELAXED) ||
	    atomic_load(&sl_ring_segment_of(producer)->tail) != next)
		return 0;
	last_ns = sl_ring_last_ns(producer, next);
	return now_ns - last_ns >= idle_ns ? next : 0;
}

static bool mark(struct sl_producer *producer, uint64_t idle_ns, uint64_t now_ns)
{
	uint32_t expected = SL_PRODUCER_TAKEN;
	uint64_t next;

	if (atomic_load(&producer->use) != SL_PRODUCER_TAKEN || !idle_at(producer, idle_ns, now_ns) ||
	    !atomic_compare_exchange_strong(&producer->use, &expected, SL_PRODUCER_SEIZED))
		return false;
	next = idle_at(producer, idle_ns, now_ns); /* the thread may have ended, and the producer belong to another */
	if (next &&
	    __atomic_compare_exchange_n(&producer->next, &next, next | SL_RING_NOWHERE, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return true;
	atomic_store(&producer->use, SL_PRODUCER_TAKEN);
	return false;
}

/* After the barrier: takes the segment if the thread has seen the mark, or unmarks it if the thread came first. */
static void take(struct sl_ring *ring, struct sl_producer *producer, bool passed)
{
	uint64_t next = __atomic_load_n(&producer->next, __ATOMIC_SEQ_CST);

	if (next & SL_RING_NOWHERE && !passed) {
		__atomic_compare_exchange_n(&producer->next, &next, next & ~SL_RING_NOWHERE, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
	} else if (next & SL_RING_NOWHERE) {
		atomic_fetch_sub(&ring->held_segments, 1);
		atomic_store(&producer->segment->end, next & ~SL_RING_NOWHERE);
		sl_ring_release(ring, (unsigned)(producer->segment - ring->file->segment));
	}
	atomic_store(&producer->use, SL_PRODUCER_TAKEN);
}

/*
 * True: no thread has this id, in any process, since after vfork a child that shares our memory may call too.  If a new thread has
 * the id, the segment is kept, which does no harm.
 */
static bool is_gone(int32_t tid)
{
	return tid && syscall(SYS_tkill, tid, 0) && errno == ESRCH;
}

/*
 * Ends the producer of a thread that left by the system call `exit`.  Inside a call it would never become idle by itself.  Its
 * unfinished slots are given up or abandoned, as where the C library ends a thread.
 */
static void bury(struct sl_ring *ring, struct sl_producer *producer, uint64_t now_ns)
{
	uint64_t next = __atomic_load_n(&producer->next, __ATOMIC_ACQUIRE);
	uint32_t expected = SL_PRODUCER_TAKEN;

	if (atomic_load(&producer->use) != SL_PRODUCER_TAKEN || next & SL_RING_NOWHERE ||
	    now_ns - sl_ring_last_ns(producer, next) < AT_WORK_NS || !is_gone(atomic_load(&producer->tid)) ||
	    !atomic_compare_exchange_strong(&producer->use, &expected, SL_PRODUCER_SEIZED))
		return;
	if (is_gone(atomic_load(&producer->tid))) /* the producer may belong to another thread by now */
		sl_ring_end(ring, producer);
	else
		atomic_store(&producer->use, SL_PRODUCER_TAKEN);
}

static void bury_all(struct sl_ring *ring)
{
	static uint64_t asked_ns; /* writer only */
	uint64_t now_ns = sl_agent_now();

	if (now_ns - asked_ns < ASKED_NS)
		return;
	asked_ns = now_ns;
	for (uint32_t i = 0; i < atomic_load(&ring->producers_used); i++)
		bury(ring, &ring->producers[i], now_ns);
}

void sl_ring_take_back(struct sl_ring *ring, uint64_t idle_ns)
{
	struct sl_producer *marked[SL_SEGMENT_MAX];
	uint64_t now_ns = sl_agent_now();
	unsigned count = 0;
	bool passed;

	if (sl_open_proc_sandboxed())
		return;
	bury_all(ring);
	if (!is_available())
		return;
	for (uint32_t i = 0; i < atomic_load(&ring->producers_used) && count < SL_SEGMENT_MAX; i++)
		if (mark(&ring->producers[i], idle_ns, now_ns))
			marked[count++] = &ring->producers[i];
	passed = count && barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	while (count)
		take(ring, marked[--count], passed);
}
