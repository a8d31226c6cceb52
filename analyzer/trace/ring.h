/* SPDX-License-Identifier: MIT */
/*
 * A copy of a ring file (common/ringfile.h) at one instant: what the process had recorded and the writer had not written.  It
 * is read with pread.  The process may be alive and writing meanwhile, so a slot counts only if its number is the expected one
 * both before and after the copy.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "analyzer/trace/damage.h"
#include "common/ringfile.h"

struct sl_recovered_ring {
	char *path; /* NULL: there is none */
	uid_t owner;
	bool alive; /* its process holds the lock, or lives on this boot */
	struct sl_ringfile *head;
	uint8_t *header_map; /* head->header_bytes of msgpack */
	unsigned segments;
	struct sl_slot **slots; /* event segments in use; each array has room for `segments` */
	uint8_t **defs;		/* definition log segments in use */
};

/*
 * False: there is no ring, or none that can be read, which `damage` then says.  To be read before the trace file: items that the
 * writer moves in between are then in both.  owner: whose file it must be, since anybody may make one where rings of
 * other file systems lie; SL_RING_OF_ANY: the path is one that the user named or a search found.  _head: without the segments.
 */
#define SL_RING_OF_ANY ((uid_t)-1)
bool sl_ring_open(struct sl_recovered_ring *ring, const char *path, uid_t owner, struct sl_damage *damage);
bool sl_ring_open_head(struct sl_recovered_ring *ring, const char *path, struct sl_damage *damage);
/* True: the process of this header lives: on this boot, with this pid and this start (ticks after boot). */
bool sl_ring_process_lives(const char *boot_id, uint64_t pid, uint64_t process_start);
/* Frees the content and keeps the head. */
void sl_ring_drop(struct sl_recovered_ring *ring);
void sl_ring_free(struct sl_recovered_ring *ring); /* frees everything */

/* The thread of an event segment; 0: it is no event segment. */
uint32_t sl_ring_thread(const struct sl_recovered_ring *ring, unsigned segment);

/*
 * The next slot of a thread at or after *seq, in the segment index[*at]; moves both.  NULL at the end.  *second is the slot
 * after it. FILLING slots are passed over.
 */
struct sl_ring_walk {
	const struct sl_recovered_ring *ring;
	uint8_t index[SL_SEGMENT_MAX];
	unsigned count, at;
	uint64_t seq; /* next slot number to look at */
};
void sl_ring_walk(struct sl_ring_walk *walk, const struct sl_recovered_ring *ring, uint32_t thread, uint64_t from);
const struct sl_slot *sl_ring_next(struct sl_ring_walk *walk, const struct sl_slot **second);

/* Calls `each` for whole maps of the definition log, from position `from` on. */
void sl_ring_defs(const struct sl_recovered_ring *ring, uint64_t from, void (*each)(void *data, const uint8_t *map, size_t bytes),
		  void *data);
/* The same up to the first map that is not whole yet; returns the position where to go on.  each NULL: only finds that position. */
uint64_t sl_ring_defs_settled(const struct sl_recovered_ring *ring, uint64_t from,
			      void (*each)(void *data, const uint8_t *map, size_t bytes), void *data);
