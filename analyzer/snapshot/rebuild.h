/* SPDX-License-Identifier: MIT */
/*
 * The state of one device's allocator before the first event of a snapshot.  The file has the state at its end and the events that
 * led there; so the events are undone, the newest first.  Blocks and places come from different evidence:
 *
 *	blocks		  follows from the events alone: a block that is freed and never made was made before, and so was one that
 *			  the end has and no event made
 *	places		  needs the allocator's rules of sizes, and is checked: the events are done again, and must lead to the end
 *
 * One thread per device.
 */
#pragma once

#include "analyzer/base/vector.h"
#include "analyzer/snapshot/pieces.h"
#include "analyzer/snapshot/read.h"

/* A block that was made before the first event. */
struct sl_rebuilt_block {
	uint64_t addr, size, requested; /* size: as it lay there; where that is not known, the request as it is rounded */
	uint32_t stack;			/* its own; SL_SNAPSHOT_NONE */
	uint32_t group;			/* where `exact` */
	size_t freed;			/* the event that freed it; SIZE_MAX: it is there at the end */
};

/* A segment, or of an expandable one a stretch that has memory. */
struct sl_rebuilt_segment {
	uint64_t addr, size;
	uint32_t stack, group;
};

/* Pieces of one segment have these in common; the mapped stretches of expandable segments of one kind are one group. */
struct sl_rebuilt_group {
	uint16_t stream, pool;
	bool small, expandable;
};

struct sl_rebuilt {
	const struct sl_snapshot *snapshot;
	int device;
	struct sl_snapshot_range events;
	bool trimmed;		      /* the events do not lead to the final state: nothing is known of what was there before */
	bool exact;		      /* the place of each block is known, at the beginning and after each event */
	uint64_t reserved, requested; /* at the beginning */
	SL_VECTOR(struct sl_rebuilt_block) blocks; /* by address */
	SL_VECTOR(struct sl_rebuilt_segment) segments;
	SL_VECTOR(struct sl_rebuilt_group) groups;
	SL_VECTOR(struct sl_tile) start; /* pieces at the beginning, where `exact` */
	uint32_t *moved;		 /* by event: the group of the memory that it brings or takes away */
};

#define SL_SNAPSHOT_FEW 10 /* fewer events, none of them an oom, are no window: the file is the state at its end */

void sl_rebuild(struct sl_rebuilt *rebuilt, const struct sl_snapshot *snapshot, int device);
void sl_rebuilt_free(struct sl_rebuilt *rebuilt);

/* The size of the block that a request gets, before what is left over is looked at. */
uint64_t sl_rebuilt_rounded(const struct sl_snapshot *snapshot, uint64_t bytes);

/* Goes through the events in their order; pieces are as they lie before event `at`. */
struct sl_rebuilt_walk {
	struct sl_rebuilt *rebuilt;
	struct sl_pieces pieces;
};

void sl_rebuilt_walk_begin(struct sl_rebuilt_walk *walk, struct sl_rebuilt *rebuilt);
/* Does one event.  Returns the size of the block that an alloc made, 0 for others; UINT64_MAX: the event cannot be. */
uint64_t sl_rebuilt_walk_step(struct sl_rebuilt_walk *walk, const struct sl_snapshot_event *event);
void sl_rebuilt_walk_end(struct sl_rebuilt_walk *walk);
