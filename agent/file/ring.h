/* SPDX-License-Identifier: MIT */
/*
 * The ring file in this process (layout: common/ringfile.h).  Producers are the threads that call the GPU,
 * the consumer is the writer thread.  No locks; a producer makes a system call only when it moves on to a
 * fresh segment.
 */
#pragma once

#include <stdbool.h>

#include "common/base.h"
#include "common/ringfile.h"

/*
 * A thread's place in the ring; private memory, reused after the thread's end.  A thread without recent calls may have no segment:
 * then SL_RING_NOWHERE is set in `next`, and its next call takes one.
 */
struct sl_producer {
	_Alignas(128) struct sl_slot *slots; /* slots of its segment; on cache lines of its own, which processors fetch in pairs */
	uint64_t first; /* slot number of slots[0]; a copy, since the writer writes to the segment's cache line with it */
	struct sl_segment *segment;
	uint64_t next;		 /* slot number it writes next */
	uint64_t settled;	 /* every slot before this one has a valid state word; equals `next` when no slot is being filled */
	uint64_t limit;		 /* first slot number that does not fit, as far as the thread knows */
	_Atomic uint32_t thread; /* id in the trace; 0: none */
	_Atomic uint32_t taken;	 /* enum sl_producer_use */
	_Atomic int32_t tid;	 /* kernel's id of its thread; 0: none yet, or no longer */
	uint64_t seen;		 /* writer only: `next` at its last pass */
	uint32_t hopeless;	 /* 1 + what gave hope (ring.c) when the thread waited in vain; 0: it did not */
};

enum sl_producer_use {
	SL_PRODUCER_FREE,
	SL_PRODUCER_TAKEN,
	SL_PRODUCER_SEIZED, /* held by the writer for some microseconds, to take its segment back */
	SL_PRODUCER_BUSY,   /* held by its thread, which takes a segment or ends: the writer takes nothing back */
};

#define SL_PRODUCER_MAX (1u << 16) /* most threads at once; only the memory of those that exist is touched */
#define SL_RING_NOWHERE (1ull << 63)

struct sl_ring {
	struct sl_ringfile *file; /* the mapping; segments follow at SL_RINGFILE_HEAD */
	int fd;
	const char *path;	     /* path of the file; lives as long as the ring */
	bool elsewhere;		     /* it lies in memory, not on the disk that the trace is written to */
	uint64_t device, inode;	     /* device and inode of fd: the program may have closed it and opened another file there */
	_Atomic uint32_t growing;    /* a thread is making the file longer */
	_Atomic uint64_t refused_ns; /* when the disk last had no room for it; 0: it had */
	_Atomic uint32_t holes;	     /* segments that have no blocks */
	_Atomic uint32_t orders;     /* segments begun */
	_Atomic uint64_t log;	     /* definitions: index of their segment << 32 | an offset at or before its first free byte */
	_Atomic uint32_t log_cut;    /* 1: a definition found no room; 2: that is said */
	_Atomic uint32_t defs_users; /* threads inside sl_define_publish */
	_Atomic uint32_t held;	     /* segments that belong to threads */
	_Atomic uint32_t wanted;     /* a thread found no segment */
	_Atomic uint32_t waiting;    /* threads that wait for one */
	_Atomic uint64_t called_ns;  /* when one of these last woke the writer */
	_Atomic uint32_t freed;	     /* how often a segment came free */
	_Atomic uint32_t crowded;    /* events were lost because threads inside calls had all segments */
	_Atomic uint32_t producers_used, producer_hint; /* no producer from `used` on is taken; one below `hint` may be free */
	uint8_t *bytes[SL_SEGMENT_MAX];
	uint64_t free_ns[SL_SEGMENT_MAX];	  /* when the segment came free */
	_Atomic uint32_t left_by[SL_SEGMENT_MAX]; /* thread whose old slots are or were in the segment; 0: all zeroes */
	uint8_t clean[SL_SEGMENT_MAX];		  /* the segment is free and its pages were given back; writer only */
	struct sl_producer producers[SL_PRODUCER_MAX];
};

/* Maps a ring over fd, an empty file at `path`, with room for `segments`.  soon: for calls that follow at once. 0 or errno. */
int sl_ring_create(struct sl_ring *ring, int fd, const char *path, bool elsewhere, unsigned segments, bool soon);

/*
 * Gives a ring whose file was removed a new file with the same name, addresses and contents. 0 or errno.  Needed after an exec that
 * failed; calls that other threads begin wait meanwhile (sl_agent_await_exec).
 */
int sl_ring_rebuild(struct sl_ring *ring);

/* In a child: forgets the parent's ring but for its header.  False: there is none, since the parent was not recorded. */
bool sl_ring_drop_inherited(void);

/* Forgets that header too.  err: errno for which the child has no recording, which the parent's trace then says. 0: it has one. */
void sl_ring_end_inheritance(int err);

/* Writer: provides at least `spare` free segments in the file, and as many as are in use, up to the cap. */
void sl_ring_provide(struct sl_ring *ring, unsigned spare);

/*
 * Writer: gives the system back the pages of segments that have been free since before `before_ns`.  Of those beyond
 * `spare` it gives back the blocks on disk too.  The file keeps its length, because others may have it mapped.
 */
void sl_ring_give_back(struct sl_ring *ring, unsigned spare, uint64_t before_ns);

/* A producer for the calling thread, without a segment yet; NULL when there is none left. */
struct sl_producer *sl_ring_attach(struct sl_ring *ring, int tid);

/* The thread's segment, for other threads to read.  It has one only if `next`, read before, is without SL_RING_NOWHERE. */
static inline struct sl_segment *sl_ring_segment_of(const struct sl_producer *producer)
{
	return __atomic_load_n(&producer->segment, __ATOMIC_RELAXED);
}

/* `next` as the thread itself reads it: the writer may mark it at any moment. */
static inline uint64_t sl_ring_next(const struct sl_producer *producer)
{
	return __atomic_load_n(&producer->next, __ATOMIC_RELAXED);
}

/* Number of the slot it writes next. */
static inline uint64_t sl_ring_position(const struct sl_producer *producer)
{
	return sl_ring_next(producer) & ~SL_RING_NOWHERE;
}

/* Writer: take back the segments of threads that made no call for idle_ns and whose events are all in the file. */
void sl_ring_take_back(struct sl_ring *ring, uint64_t idle_ns);

/* When the thread's last event began; 0: it has none in its segment. */
uint64_t sl_ring_last_ns(const struct sl_producer *producer, uint64_t next);

/* A thread of the program has been in a call. */
static inline bool sl_ring_is_used(const struct sl_ring *ring)
{
	return atomic_load(&ring->file->threads);
}

/* True: no event waits, no call is in flight, and no living thread but `mine` (NULL: none) made a call for so long. */
bool sl_ring_quiet(const struct sl_ring *ring, const struct sl_producer *mine, uint64_t silent_ns);

/* Called when the thread ends: the writer drains its events and frees its segment. */
void sl_ring_detach(struct sl_ring *ring, struct sl_producer *producer);

/* The same for the producer of a thread that has ended, which the writer has seized. */
void sl_ring_end(struct sl_ring *ring, struct sl_producer *producer);

/* True: the thread that owns the segment still uses it. */
bool sl_ring_has_thread(const struct sl_ring *ring, const struct sl_segment *segment);

/* Gives up slots that were reserved but not published: their owner was interrupted and will try again, or was unwound. */
void sl_ring_settle(struct sl_producer *producer);

/* Makes room for `slots` more.  False: the ring is at its cap and the writer makes no progress; the event is counted as a gap. */
bool sl_ring_make_room(struct sl_producer *producer, unsigned slots);

/* Makes every thread's next call look for room, which starts a parked writer.  A thread that looks at this moment may miss it. */
void sl_ring_remind(struct sl_ring *ring);

/* The slot of that number in any segment of the thread; NULL: it is in the file. */
struct sl_slot *sl_ring_find(struct sl_ring *ring, const struct sl_producer *producer, uint64_t seq);

static inline struct sl_slot *sl_ring_slot(const struct sl_producer *producer, uint64_t seq)
{
	return &producer->slots[(seq - producer->first) % SL_SEGMENT_SLOTS];
}

/*
 * Exchanges a word in one instruction where there is one.  That is atomic towards signal handlers of this thread, which is
 * all that a producer needs, at a fourth of the price of being atomic towards other threads.  ThreadSanitizer does not see
 * into it.
 */
static inline bool sl_ring_exchange(uint64_t *word, uint64_t expected, uint64_t desired)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool same;

	__asm__ volatile("cmpxchgq %3, %1" : "=@cce"(same), "+m"(*word), "+a"(expected) : "r"(desired) : "memory");
	return same;
#else
	return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
#endif
}

/*
 * Prefetches the slots of the next calls for writing, since the writer's core had them last.  Done before the program's own
 * work and not before a time stamp, which would wait for it.  Past the end of the segment it does nothing.
 */
#define SL_RING_AHEAD 4

static inline void sl_ring_expect(const struct sl_slot *slot)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*slot)); /* a no-op on processors without it */
#else
	__builtin_prefetch(slot, 1);
#endif
}

/*
 * Reserves `slots` (1 or 2) slots, to fill and publish at once; their number in *seq.  NULL: no room (sl_ring_make_room).
 *
 * A signal handler may come between this and sl_ring_publish, and may never return (longjmp).  So the next call on the thread gives
 * the slots up, and readers pass over them.  If the interrupted call goes on, it sees that and reserves again.
 */
static inline struct sl_slot *sl_ring_reserve(struct sl_producer *producer, unsigned slots, uint64_t *seq)
{
	for (;;) {
		struct sl_slot *slot;

		if (SL_UNLIKELY(sl_ring_next(producer) != producer->settled))
			sl_ring_settle(producer);
		*seq = sl_ring_next(producer);
		if (SL_UNLIKELY(*seq + slots > __atomic_load_n(&producer->limit, __ATOMIC_RELAXED))) {
			if (!sl_ring_make_room(producer, slots))
				return NULL;
			continue;
		}
		slot = sl_ring_slot(producer, *seq);
		if (SL_LIKELY(sl_ring_exchange(&producer->next, *seq, *seq + slots))) {
			sl_ring_expect(slot + SL_RING_AHEAD);
			sl_ring_expect(slot + SL_RING_AHEAD + 1);
			return slot;
		}
	}
}

/* Makes the slots valid.  False: they were given up meanwhile; reserve others. */
static inline bool sl_ring_publish(struct sl_producer *producer, struct sl_slot *slot, uint64_t seq, enum sl_slot_state state,
				   bool wide)
{
	uint64_t before = atomic_load_explicit(&slot->state, memory_order_relaxed);

	if (SL_UNLIKELY(before >> SL_SLOT_SHIFT == seq ||
			!sl_ring_exchange((uint64_t *)&slot->state, before, SL_SLOT_WORD(seq, state, wide))))
		return false;
	__atomic_store_n(&producer->settled, seq + 1 + wide, __ATOMIC_RELAXED); /* the writer reads it: ring_idle.c */
	return true;
}

static inline uint8_t *sl_ring_segment_bytes(const struct sl_ring *ring, unsigned index)
{
	return ring->bytes[index];
}

/* Claims a free segment for `use`, with `first` and `tail` set and its bytes zero; -1: none. */
int sl_ring_claim(struct sl_ring *ring, enum sl_segment_use use, uint32_t thread, int tid, uint64_t first);

/* The same; makes the file longer where there is none. */
int sl_ring_claim_or_grow(struct sl_ring *ring, enum sl_segment_use use, uint32_t thread, int tid, uint64_t first);

/* Frees a segment that was claimed for SL_SEGMENT_CLAIMED and not used. */
void sl_ring_unclaim(struct sl_ring *ring, unsigned index);

/* A segment so claimed, which the end mark of the log names, is part of the log from now on.  Any thread, any number of times. */
void sl_ring_open_log(struct sl_ring *ring, unsigned index);

/* Writer: frees a drained segment. */
void sl_ring_release(struct sl_ring *ring, unsigned index);

/* The same without clearing it, for a thread that may claim it again: clearing costs as much as encoding two columns. */
void sl_ring_leave(struct sl_ring *ring, unsigned index);
