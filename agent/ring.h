/* SPDX-License-Identifier: MIT */
/*
 * The ring file in this process (layout: common/ringfile.h).  Producers are the threads that call the GPU,
 * the consumer is the writer thread.  No locks; a producer makes a system call only when it moves on to a
 * fresh segment.
 */
#ifndef AGENT_RING_H
#define AGENT_RING_H

#include <stdbool.h>

#include "common/base.h"
#include "common/ringfile.h"

/* A thread's place in the ring; private memory, reused after the thread's end. */
struct sl_producer {
	struct sl_slot *slots;	    /* of its segment */
	struct sl_segment *segment;
	uint64_t next;		    /* slot number it writes next */
	uint64_t limit;		    /* first slot number that does not fit, as far as it knows */
	uint32_t thread;	    /* id in the trace */
	_Atomic uint32_t taken;
};

#define SL_PRODUCER_MAX SL_SEGMENT_MAX

struct sl_ring {
	struct sl_ringfile *file; /* the mapping; segments follow at SL_RINGFILE_HEAD */
	int fd;
	uint64_t device, inode; /* of fd: the program may have closed it and opened another */
	_Atomic uint32_t growing;    /* a thread is making the file longer */
	_Atomic uint32_t orders;     /* segments begun */
	_Atomic uint32_t defs;	     /* index of the segment the definition log is in */
	_Atomic uint32_t defs_hint;  /* offset at or before its first free byte */
	_Atomic uint32_t defs_users; /* threads inside sl_define */
	struct sl_producer producers[SL_PRODUCER_MAX];
};

/* Map a ring over fd, which is empty, with room for `segments`.  0 or errno. */
int sl_ring_create(struct sl_ring *ring, int fd, unsigned segments);

/*
 * Give a ring whose file was removed a new file at `path`, at the same addresses, with what it holds.  0 or errno.
 * Events of other threads in this very moment may be lost: exec of a program with other threads at work failed.
 */
int sl_ring_rebuild(struct sl_ring *ring, const char *path);

/* Forget the parent's ring, in a child.  False: there is none, this is no child of a recorded process. */
bool sl_ring_drop_inherited(void);

/* Writer: have at least `spare` free segments in the file, and as many as are in use, up to the cap. */
void sl_ring_provide(struct sl_ring *ring, unsigned spare);

/* A producer for the calling thread; NULL when there is none left. */
struct sl_producer *sl_ring_attach(struct sl_ring *ring, int tid);

/* Nothing waits, no call is in flight, and no thread but `mine` (NULL: none) made one a moment ago: nobody is at work. */
bool sl_ring_quiet(const struct sl_ring *ring, const struct sl_producer *mine);

/* The thread ends: what it wrote will be drained and its segment freed. */
void sl_ring_detach(struct sl_producer *producer);

/*
 * `slots` (1 or 2) free slots, their number in *seq.  NULL: the ring is at its cap and the writer makes no
 * progress; the event is counted as a gap.
 */
struct sl_slot *sl_ring_reserve_slow(struct sl_producer *producer, unsigned slots, uint64_t *seq);

static inline struct sl_slot *sl_ring_slot(const struct sl_producer *producer, uint64_t seq)
{
	return &producer->slots[(seq - producer->segment->first) % SL_SEGMENT_SLOTS];
}

static inline struct sl_slot *sl_ring_reserve(struct sl_producer *producer, unsigned slots, uint64_t *seq)
{
	if (SL_UNLIKELY(producer->next + slots > producer->limit))
		return sl_ring_reserve_slow(producer, slots, seq);
	*seq = producer->next;
	producer->next += slots;
	return sl_ring_slot(producer, *seq);
}

static inline uint8_t *sl_ring_segment_bytes(const struct sl_ring *ring, unsigned index)
{
	return (uint8_t *)ring->file + SL_RINGFILE_HEAD + (size_t)index * SL_SEGMENT_BYTES;
}

/* Claim a free segment for `use`, with `first` and `tail` set and its bytes zero; -1: none. */
int sl_ring_claim(struct sl_ring *ring, enum sl_segment_use use, uint32_t thread, int tid, uint64_t first);

/* Writer: a drained segment becomes free again. */
void sl_ring_release(struct sl_ring *ring, unsigned index);

#endif
