/* SPDX-License-Identifier: MIT */
/*
 * The ring file: events that the writer has not yet written to the trace.  It is mapped MAP_SHARED, so the kernel keeps it
 * when the process is killed.  The analyzer reads it together with the trace file.
 *
 *	0		struct sl_ringfile
 *	SL_RINGFILE_HEADER_AT	the header map, msgpack, the same bytes as the trace file's first frame
 *	SL_RINGFILE_HEAD	segment 0, segment 1, ... of SL_SEGMENT_BYTES each
 *
 * A segment belongs to one thread's events, or to the definition log, or is free.  Events have 16384 slots.  Slot number s of the
 * thread is slots[(s - first) % SL_SEGMENT_SLOTS] of the segment that the thread then wrote to.  A thread that fills its segment
 * before the writer has drained it moves on to a fresh one, whose `first` is the next slot number.  The old one then has `end` set
 * and is freed when drained.
 */
#pragma once

#include "common/slot.h"

#define SL_RINGFILE_MAGIC   "stormlog.ring\n\1" /* 15 bytes and the terminator */
#define SL_RINGFILE_VERSION 2

/* Where rings lie whose traces are on a network file system; each ring's name begins with this. */
#define SL_REMOTE_RING	      "/dev/shm"
#define SL_REMOTE_RING_PREFIX "stormlog-"

#define SL_SEGMENT_BYTES (1u << 20)
#define SL_SEGMENT_SLOTS (SL_SEGMENT_BYTES / 64)
#define SL_SEGMENT_MAX	 256 /* threads that call the GPU, and their backlog */
#define SL_BACKLOG_MAX	 64  /* segments (64 MiB) beyond the one that every thread has */

#define SL_RINGFILE_HEADER_AT (64u << 10)
#define SL_RINGFILE_HEAD      (256u << 10)
#define SL_RINGFILE_MOST      (SL_RINGFILE_HEAD + (uint64_t)SL_SEGMENT_MAX * SL_SEGMENT_BYTES) /* bytes of a file */

/* HOLE: the segment is nobody's, and the file has no disk blocks for it. */
enum sl_segment_use { SL_SEGMENT_FREE, SL_SEGMENT_CLAIMED, SL_SEGMENT_EVENTS, SL_SEGMENT_DEFS, SL_SEGMENT_HOLE };

/* 128 bytes: the producer and the writer write to different cache lines. */
struct sl_segment {
	_Atomic uint32_t use;	 /* enum sl_segment_use */
	_Atomic uint32_t thread; /* events: thread id of the trace, from 1 */
	int32_t tid;		 /* the system's id of that thread */
	uint32_t order;		 /* segments of one thread, or of the log, in the order in which they were begun */
	uint64_t first;		 /* slot number of slots[0]; definition log: position of its first byte */
	_Atomic uint64_t end;	 /* the thread left the segment at this slot number; 0: it is in use */
	uint32_t producer;	 /* the agent's own */
	uint8_t reserved[28];
	_Atomic uint64_t tail; /* slot number (definition log: position) up to which the writer has written the file */
	uint8_t reserved2[56];
};
_Static_assert(sizeof(struct sl_segment) == 128, "two cache lines");

/* What an operator asks of a living recording.  The operator writes it into the header; the writer looks ten times a second. */
enum sl_wish { SL_ASKED_NOTHING, SL_ASKED_TO_WAKE, SL_ASKED_TO_REST };

enum sl_process_state { SL_PROCESS_STARTING, SL_PROCESS_RUNNING, SL_PROCESS_COMPLETED };

#define SL_CHILD_SAID (1u << 31)

struct sl_ringfile {
	char magic[16];
	uint32_t version, segment_bytes, segment_max, header_bytes; /* header_bytes: length of the header map, 0: none yet */
	uint64_t pid, process_start; /* start time in clock ticks after boot, /proc/PID/stat field 22 */
	char boot_id[40];	     /* /proc/sys/kernel/random/boot_id */
	_Atomic uint32_t state;	     /* enum sl_process_state */
	_Atomic uint32_t segments;   /* that the file has room for */
	_Atomic uint32_t threads;    /* thread ids given out */
	_Atomic uint32_t stopped;    /* errno or reason code that stopped the recording, 0: none */
	_Atomic uint64_t gap_events, gap_begin_ns,
		gap_end_ns;	 /* events that were lost because the cap was reached and the disk hung */
	char trace[256];	 /* name of the trace file; absolute where the ring lies elsewhere */
	_Atomic uint32_t obeys;	 /* 1: the agent looks at `asked`; older agents do not */
	_Atomic uint32_t asked;	 /* enum sl_wish; the agent sets NOTHING once it has done it */
	_Atomic uint32_t asleep; /* 1: events are counted and kept in memory; slots before a tail are in no file */
	uint32_t reserved3;
	_Atomic uint64_t asleep_since_ns;
	_Atomic uint64_t asleep_written; /* `slept` maps in the files, with the events that follow them */
	/* since the last of them: blocks that were made and that ended, and bytes as far as known */
	_Atomic uint64_t asleep_begun, asleep_begun_bytes, asleep_ended, asleep_ended_bytes;
	_Atomic uint32_t ended;	 /* wait status + 1, set by this process at its end or by the one that waited for it; 0: by none */
	uint32_t leaves_by_call; /* 1: the program's runtime exits by the system call (Go), which the agent does not see */
	_Atomic uint32_t child_lost; /* errno of a forked child that could not begin a recording; with SL_CHILD_SAID once noted */
	uint8_t reserved[436];
	struct sl_segment segment[SL_SEGMENT_MAX];
};
_Static_assert(offsetof(struct sl_ringfile, segment) == 896, "as in version 2 from the beginning");
_Static_assert(sizeof(struct sl_ringfile) <= SL_RINGFILE_HEADER_AT, "header map follows");

/*
 * The definition log: records one after the other, each a multiple of 8 bytes:
 *	u64 word = bytes << 8 | state, then `bytes` bytes of one msgpack map, padded.
 * A producer reserves by exchanging a zero word for one that is SL_DEF_WRITING, so that a record has a length
 * from the first moment; it becomes SL_DEF_DONE when the map is whole.  SL_DEF_END: the log goes on in the
 * segment with the next order, whose index the agent has there instead of a length.  Positions count bytes since the process began.
 */
enum sl_def_state { SL_DEF_NONE, SL_DEF_WRITING, SL_DEF_DONE, SL_DEF_END };
#define SL_DEF_WORD(bytes, state) ((uint64_t)(bytes) << 8 | (state))
#define SL_DEF_SIZE(bytes)	  (8 + (((size_t)(bytes) + 7) & ~(size_t)7))
