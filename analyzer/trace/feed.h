/* SPDX-License-Identifier: MIT */
/*
 * What one thread of a trace contributes to the order over all threads (order.c): its events, first from its frames and then from
 * the ring.  They are stored in slot order, by the begin of their calls.  A call stamped after it returned is stored before the
 * calls made inside it, so an event waits in a heap until the thread has begun a later one.  The feed of thread 0 gives records:
 * samples and contexts of out-of-memory errors.
 *
 * One thread of ours; the trace outlives its feeds.
 */
#pragma once

#include "analyzer/trace/cursor.h"
#include "analyzer/trace/trace.h"
#include "common/block.h"

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

/* Adds a frame, in any order; its content is not read. */
void sl_feed_add_frame(struct sl_feed *feed, struct sl_zstd_frame *frame);

/* After the last frame: sorts them and drops those whose content is in another frame.  Not for records. */
void sl_feed_sort(struct sl_feed *feed);

/* Moves to the next event or record, and sets item, time_ns and after.  False: there is none. */
bool sl_feed_advance(struct sl_feed *feed);

/* Adds a record of the ring's definition log, to be given after those in frames; `data` is the feed. */
void sl_feed_add_record(void *data, const uint8_t *bytes, size_t size);

/* The frame that the event is in, NULL: the ring. */
const struct sl_zstd_frame *sl_feed_frame(const struct sl_feed *feed);

/* Drops frames whose events have all been taken, for later passes. */
void sl_feed_drop_taken(struct sl_feed *feed);

/* Nothing comes any more: frees its buffers. */
void sl_feed_retire(struct sl_feed *feed);
void sl_feed_free(struct sl_feed *feed);
