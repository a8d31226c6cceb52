/* SPDX-License-Identifier: MIT */
/*
 * The ring file: what the process has said and the writer has not yet written.  Mapped MAP_SHARED, so the
 * kernel keeps it whatever happens to the process; the analyzer reads it together with the trace file.
 *
 *	0		struct sl_ringfile
 *	SL_RINGFILE_HEADER_AT	the header map, msgpack, the same bytes as the trace file's first frame
 *	SL_RINGFILE_HEAD	segment 0, segment 1, ... of SL_SEGMENT_BYTES each
 *
 * A segment belongs to one thread's events, or to the definition log, or is free.  Events: 16384 slots; slot
 * number s of the thread lies at slots[(s - first) % SL_SEGMENT_SLOTS] of the segment the thread then wrote
 * to.  A thread that fills its segment before the writer has drained it moves on to a fresh one, whose
 * `first` is the next slot number; the old one then has `end` set and is freed when drained.
 *
 * A call takes two slots, a range event one, a block event one or two.  The state word of an event's first slot is its truth:
 * it is set last, with release order.
 */
#ifndef COMMON_RINGFILE_H
#define COMMON_RINGFILE_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/event.h"

#define SL_RINGFILE_MAGIC   "stormlog.ring\n\1" /* 15 bytes and the terminator */
#define SL_RINGFILE_VERSION 2

/* Where rings lie whose trace lies on a network file system; each name begins so. */
#define SL_REMOTE_RING	      "/dev/shm"
#define SL_REMOTE_RING_PREFIX "stormlog-"

#define SL_SEGMENT_BYTES (1u << 20)
#define SL_SEGMENT_SLOTS (SL_SEGMENT_BYTES / 64)
#define SL_SEGMENT_MAX	 256 /* threads that call the GPU, and their backlog */
#define SL_BACKLOG_MAX	 64  /* segments, 64 MiB, beyond the one that every thread has */

#define SL_RINGFILE_HEADER_AT (64u << 10)
#define SL_RINGFILE_HEAD      (256u << 10)

enum sl_slot_state {
	SL_SLOT_EMPTY,	   /* never used, or the second slot of a call */
	SL_SLOT_FILLING,   /* given up before its words were valid: passed over */
	SL_SLOT_IN_FLIGHT, /* the real call is running: words of the first slot are valid but for time and result */
	SL_SLOT_DONE,
};

#define SL_SLOT_WIDE		       4u /* the event goes on in the next slot */
#define SL_SLOT_SHIFT		       4
#define SL_SLOT_WORD(seq, state, wide) ((uint64_t)(seq) << SL_SLOT_SHIFT | ((wide) ? SL_SLOT_WIDE : 0) | (state))

/*
 * Words of the first slot:
 *	0  api | driver_api << 16 | kind << 32 | flags << 40 | (uint16_t)device << 48
 *	1  time_ns at which the call began (calls) or happened (one stamp)
 *	2  duration_ns		(one stamp: extra)
 *	3  address		4  bytes
 *	5  python | native << 32	(block events: extra2; python is in word 6's upper half)
 *	6  (uint32_t)result | label << 32	(block and range events: label | python << 32)
 * of the second: stream, context, object, extra, extra2, caller, the agent's own
 *	(block events have a second slot where stream or object is not 0, and of it these two)
 *
 * Slot words carry the time a call began; the event's time_ns is that, or plus duration_ns for verbs stamped
 * after the call.  agent/record.c writes them, sl_slot_decode reads them: nobody else knows the layout.
 */
struct sl_slot {
	_Atomic uint64_t state; /* SL_SLOT_WORD; slot numbers start at 1 */
	uint64_t words[7];
};
_Static_assert(sizeof(struct sl_slot) == 64, "one cache line");

enum sl_segment_use { SL_SEGMENT_FREE, SL_SEGMENT_CLAIMED, SL_SEGMENT_EVENTS, SL_SEGMENT_DEFS };

/* 128 bytes: what the producer writes and what the writer writes lie on different cache lines. */
struct sl_segment {
	_Atomic uint32_t use; /* enum sl_segment_use */
	uint32_t thread;      /* events: thread id of the trace, from 1 */
	int32_t tid;	      /* the system's id of that thread */
	uint32_t order;	      /* segments of one thread, or of the log, in the order in which they were begun */
	uint64_t first;	      /* slot number of slots[0]; definition log: position of its first byte */
	_Atomic uint64_t end; /* the thread left the segment at this slot number; 0: it is in use */
	uint32_t producer;    /* the agent's own */
	uint8_t reserved[28];
	_Atomic uint64_t tail; /* slot number (definition log: position) that the writer has in the file */
	uint8_t reserved2[56];
};
_Static_assert(sizeof(struct sl_segment) == 128, "two cache lines");

enum sl_process_state { SL_PROCESS_STARTING, SL_PROCESS_RUNNING, SL_PROCESS_COMPLETED };

struct sl_ringfile {
	char magic[16];
	uint32_t version, segment_bytes, segment_max, header_bytes; /* header_bytes: of the header map, 0: none yet */
	uint64_t pid, process_start;			       /* start time in clock ticks after boot, /proc/PID/stat field 22 */
	char boot_id[40];				       /* /proc/sys/kernel/random/boot_id */
	_Atomic uint32_t state;				       /* enum sl_process_state */
	_Atomic uint32_t segments;			       /* that the file has room for */
	_Atomic uint32_t threads;			       /* thread ids given out */
	_Atomic uint32_t stopped;			       /* errno or reason code that stopped the recording, 0: none */
	_Atomic uint64_t gap_events, gap_begin_ns, gap_end_ns; /* not kept: the cap was reached and the disk hung */
	char trace[256]; /* name of the trace file, for rings that lie elsewhere an absolute path */
	uint8_t reserved[512];
	struct sl_segment segment[SL_SEGMENT_MAX];
};
_Static_assert(sizeof(struct sl_ringfile) <= SL_RINGFILE_HEADER_AT, "header map follows");

/*
 * The definition log: records one after the other, each a multiple of 8 bytes:
 *	u64 word = bytes << 8 | state, then `bytes` bytes of one msgpack map, padded.
 * A producer reserves by exchanging a zero word for one that is SL_DEF_WRITING, so that a record has a length
 * from the first moment; it becomes SL_DEF_DONE when the map is whole.  SL_DEF_END: the log goes on in the
 * segment with the next order.  Positions count bytes since the process began.
 */
enum sl_def_state { SL_DEF_NONE, SL_DEF_WRITING, SL_DEF_DONE, SL_DEF_END };
#define SL_DEF_WORD(bytes, state) ((uint64_t)(bytes) << 8 | (state))
#define SL_DEF_SIZE(bytes)	  (8 + (((size_t)(bytes) + 7) & ~(size_t)7))

/*
 * The event of a slot whose state word is IN_FLIGHT or DONE; `second` is the slot after it, ignored when the
 * state is not wide.  stamped_before and one_stamp come from the verb of the hook row.  An event in flight
 * has flag in_flight, time_ns of its begin, duration_ns, result 0.
 */
enum sl_slot_shape { SL_SHAPE_CALL, SL_SHAPE_BLOCK, SL_SHAPE_RANGE };
enum sl_slot_shape sl_slot_shape(enum sl_verb verb);
void sl_slot_decode(struct sl_event *event, const struct sl_slot *first, const struct sl_slot *second, enum sl_verb verb);

#endif
