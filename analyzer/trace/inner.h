/* SPDX-License-Identifier: MIT */
/* What the files of this room share: columns of a block, one definition, and what is still to come of a file. */
#pragma once

#include "analyzer/trace/trace.h"
#include "common/block.h"

/*
 * How far the passes over a growing trace have come (trace.h).  The events of a thread are numbered from 0 in slot order,
 * whether they are in a frame or in the ring.  An outer call takes effect after the calls inside it, so what was taken is a
 * prefix plus some events beyond it.
 */

struct sl_item;

struct sl_taken {
	uint64_t base;		    /* number of the first event in the first frame still kept, or in the ring */
	uint64_t prefix;	    /* all events below it were taken */
	uint64_t next;		    /* slots below it are in files */
	uint64_t dropped;	    /* slots below it were in frames that are not kept */
	SL_VECTOR(uint64_t) beyond; /* events beyond the prefix that were taken, ascending */
};

struct sl_cursor {
	struct sl_idmap threads;
	SL_VECTOR(struct sl_taken) taken;
	SL_VECTOR(struct sl_item) records; /* records that no pass has taken yet */
	struct sl_span source;		   /* of the last record that was kept */
	char *ring;			   /* path of the ring; NULL: there was none */
	uid_t ring_owner;
	bool begun;		 /* a pass has begun */
	bool asleep;		 /* the recording slept when the trace was opened */
	uint64_t asleep_written; /* the ring's asleep_written at that time */
	unsigned last_file;	 /* number of the last open file */
};

struct sl_taken *sl_cursor_of(struct sl_cursor *cursor, uint32_t thread);
bool sl_cursor_has(const struct sl_taken *taken, uint64_t number);
void sl_cursor_take(struct sl_taken *taken, uint64_t number);
void sl_cursor_free(struct sl_cursor *cursor);

/*
 * What one thread of a trace contributes to the order over all threads (order.c): its events, first from its frames and then from
 * the ring.  They are stored in slot order, by the begin of their calls.  A call stamped after it returned is stored before the
 * calls made inside it, so an event waits in a heap until the thread has begun a later one.  The feed of thread 0 gives records:
 * samples and contexts of out-of-memory errors.
 *
 * One thread of ours; the trace outlives its feeds.
 */

struct sl_waiting {
	struct sl_event event;
	const struct sl_hook *hook;
	uint64_t number;
};

struct sl_feed {
	struct sl_trace *trace;
	uint32_t thread;  /* 0: records in definition frames */
	uint64_t time_ns; /* of the first event; while the feed is closed, when its first frame begins */
	bool after;	  /* the first event is stamped after its call, and comes second at equal times */
	bool ready;	  /* item is what comes next; else it is to be read, or was given out */

	struct sl_taken *taken; /* by earlier passes; NULL: none */
	uint64_t number;	/* number of the event that is read next */

	struct sl_zstd_frame **frames;
	size_t frame_count, frame_at, frame_capacity;
	struct sl_inflate inflate;
	msgpack_zone zone;
	struct sl_block block;
	bool in_block, in_ring;
	struct sl_ring_walk walk;
	uint64_t file_next; /* slots below it are in the file */

	/*
	 * events that were read and not yet given out, as a heap: all calls of a thread may have begun before the first of them
	 * ends
	 */
	struct sl_waiting *waiting;
	size_t waiting_count, capacity;
	bool exhausted;
	struct sl_event slot_event;

	/*
	 * the first event or record.  The event is the first of `waiting`; it is still in its block where none waits and none can
	 * come before it
	 */
	struct sl_item item;

	/* records */
	bool record_taken;
	size_t map_at;
	SL_VECTOR(struct sl_item) ring_records;
	size_t ring_record_at;
};

/*
 * What a process's files lack: whole files, events, and what an unfinished last frame of a file means.  The process was killed
 * while it wrote the frame, or is writing it: the ring then still has the content, and nothing is missing.  Otherwise the file was
 * cut short later.
 */

/* What a process's files hold, as far as it was read. */
struct sl_files {
	const struct sl_frames *file;
	unsigned count;
	const struct sl_folded *folded;
	uint64_t log_next; /* position in the definition log up to which they have it */
};

/* The slot of the thread behind the last that the files have. */
uint64_t sl_incomplete_next(const struct sl_files *files, uint32_t thread);

/* Adds a note for each unfinished frame whose content the ring has (ring->path NULL: there is none), and damage for others. */
void sl_incomplete_say(const struct sl_files *files, const struct sl_recovered_ring *ring, struct sl_damage *damage);

/*
 * Adds damage where a file between others is missing.  Adds damage too where the files hold fewer events than their end counted.
 * It does not compare events where files are folded: their end does not count what may follow it.  footer_events 0: no end.
 */
void sl_incomplete_miss(const struct sl_files *files, const char *name, uint64_t footer_events, struct sl_damage *damage);
