/* SPDX-License-Identifier: MIT */
/*
 * What one thread of a trace gives to the order over all of them (order.c): its events, from its frames and then from the ring.
 * They lie there in slot order, by the time their calls began.  A call stamped after it returned lies before the calls made inside it;
 * so an event waits in a heap until the thread has begun a later one.  The feed of thread 0 gives records: samples and contexts of
 * out-of-memory errors.
 *
 * One thread of ours; the trace outlives its feeds.
 */
#ifndef ANALYZER_TRACE_FEED_H
#define ANALYZER_TRACE_FEED_H

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
	uint32_t thread;  /* 0: records of the definition frames */
	uint64_t time_ns; /* of the head; of a feed not yet opened the time its first frame begins */
	bool after;	  /* the head is stamped after its call: loses ties */
	bool opened;	  /* head is valid */

	struct sl_taken *taken; /* by earlier passes; NULL: there are none */
	uint64_t number;	/* of the next event that is read */

	struct sl_zstd_frame **frames;
	size_t frame_count, frame_at, frame_capacity;
	struct sl_inflate inflate;
	msgpack_zone zone;
	struct sl_block block;
	bool in_block, in_ring;
	struct sl_ring_walk walk;
	uint64_t file_next; /* slots below it are in the file */

	/* events read and not yet given out, a heap: a thread's calls may all have begun before the first of them ends */
	struct sl_waiting *waiting;
	size_t waiting_count, capacity;
	bool exhausted;
	struct sl_event slot_event;

	/* the head where nothing waits and nothing can come before it: not copied */
	const struct sl_event *direct;
	const struct sl_hook *direct_hook;
	uint64_t direct_number;

	/* records */
	bool record_taken;
	size_t map_at;
	struct sl_item record;
	SL_VECTOR(struct sl_item) ring_records;
	size_t ring_record_at;
};

/* Frames in any order; their contents are not read. */
void sl_feed_add_frame(struct sl_feed *feed, struct sl_zstd_frame *frame);

/* After the last frame: sorted, and what another frame holds already left out.  Not for records. */
void sl_feed_sort(struct sl_feed *feed);

/* To the next event or record: time_ns and after are its.  False: there is none. */
bool sl_feed_advance(struct sl_feed *feed);

/* The event that sl_feed_advance found is done with.  Records need no such call. */
void sl_feed_drop(struct sl_feed *feed);

/* A record of the ring's definition log, given after those in frames; `data` is the feed. */
void sl_feed_add_record(void *data, const uint8_t *bytes, size_t size);

/* The frame that it is in, NULL: the ring. */
const struct sl_zstd_frame *sl_feed_frame(const struct sl_feed *feed);

/* Frames whose events are all taken are not kept for later passes. */
void sl_feed_drop_taken(struct sl_feed *feed);

/* Nothing comes any more: its buffers. */
void sl_feed_retire(struct sl_feed *feed);
void sl_feed_free(struct sl_feed *feed);

#endif
