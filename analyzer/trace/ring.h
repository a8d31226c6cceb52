/* SPDX-License-Identifier: MIT */
/*
 * A ring file as it was at one instant (common/ringfile.h): what the process had said and the writer had not
 * written.  Read with pread into memory of ours; the process may be alive and writing meanwhile, so a slot
 * counts only when its number is the expected one before and after the copy.
 */
#ifndef ANALYZER_TRACE_RING_H
#define ANALYZER_TRACE_RING_H

#include <stdbool.h>

#include "analyzer/trace/damage.h"
#include "common/ringfile.h"

struct sl_recovered_ring {
	char *path; /* NULL: there is none */
	bool alive; /* its process holds the lock, or lives on this boot */
	struct sl_ringfile *head;
	uint8_t *header_map;		       /* head->header_bytes of msgpack */
	struct sl_slot *slots[SL_SEGMENT_MAX]; /* event segments in use */
	uint8_t *defs[SL_SEGMENT_MAX];	       /* definition log segments in use */
	unsigned segments;
};

/* false: no ring there, or none that can be read (said).  Read it before the trace file, so that what is
 * drained in between is in both and not in neither. */
bool sl_ring_open(struct sl_recovered_ring *ring, const char *path, struct sl_damage *damage);
/* Without what is in it. */
bool sl_ring_open_head(struct sl_recovered_ring *ring, const char *path, struct sl_damage *damage);
/* The process of a header lives: on this boot, with this pid and this start (ticks after boot). */
bool sl_ring_process_lives(const char *boot_id, uint64_t pid, uint64_t process_start);
/* What is in it; its head stays. */
void sl_ring_drop(struct sl_recovered_ring *ring);
void sl_ring_free(struct sl_recovered_ring *ring);

/* The thread of a segment of events; 0: it is none. */
uint32_t sl_ring_thread(const struct sl_recovered_ring *ring, unsigned segment);

/*
 * The next slot of a thread at or after *seq, in the segment index[*at]; moves both.  NULL at the end.
 * *second is the slot after it.  FILLING slots are passed over.
 */
struct sl_ring_walk {
	const struct sl_recovered_ring *ring;
	uint8_t index[SL_SEGMENT_MAX];
	unsigned count, at;
	uint64_t seq; /* next slot number to look at */
};
void sl_ring_walk(struct sl_ring_walk *walk, const struct sl_recovered_ring *ring, uint32_t thread, uint64_t from);
const struct sl_slot *sl_ring_next(struct sl_ring_walk *walk, const struct sl_slot **second);

/* Whole maps of the definition log from position `from` on. */
void sl_ring_defs(const struct sl_recovered_ring *ring, uint64_t from, void (*each)(void *data, const uint8_t *map, size_t bytes),
		  void *data);
/* The same up to the first that is not whole yet; returns where to go on.  each NULL: that alone. */
uint64_t sl_ring_defs_settled(const struct sl_recovered_ring *ring, uint64_t from,
			      void (*each)(void *data, const uint8_t *map, size_t bytes), void *data);

#endif
