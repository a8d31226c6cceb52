/* SPDX-License-Identifier: MIT */
/*
 * What a process's files lack: whole files, events, and what an unfinished last frame of a file means.  The process was killed
 * while it wrote the frame, or is writing it: the ring then still has the content, and nothing is missing.  Otherwise the file was
 * cut short later.
 */
#pragma once

#include "analyzer/trace/totals.h"
#include "analyzer/trace/frames.h"
#include "analyzer/trace/ring.h"

/* What a process's files hold, as far as it was read. */
struct sl_files {
	const struct sl_frames *file;
	unsigned count;
	const struct sl_folded *folded;
	uint64_t log_next; /* position in the definition log up to which they have it */
};

/* The slot of the thread behind the last that the files have. */
uint64_t sl_incomplete_next(const struct sl_files *files, uint32_t thread);

/* True: what the unfinished last frame of the last file was to hold is in the ring. */
bool sl_incomplete_is_in_ring(const struct sl_files *files, const struct sl_recovered_ring *ring);

/* Adds a note for each unfinished frame whose content the ring has (ring->path NULL: there is none), and damage for others. */
void sl_incomplete_say(const struct sl_files *files, const struct sl_recovered_ring *ring, struct sl_damage *damage);

/*
 * Adds damage where a file between others is missing, and where the files hold fewer events than their end said, of which
 * nothing is folded: what may follow the end is not counted there.  footer_events 0: there is no end.
 */
void sl_incomplete_miss(const struct sl_files *files, const char *name, uint64_t footer_events, struct sl_damage *damage);
