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

struct sl_consumed {
	uint64_t base;		    /* number of the first event in the first frame still kept, or in the ring */
	uint64_t prefix;	    /* all events below it were taken */
	uint64_t next;		    /* slots below it are in files */
	uint64_t dropped;	    /* slots below it were in frames that are not kept */
	SL_VECTOR(uint64_t) beyond; /* events beyond the prefix that were taken, ascending */
};

struct sl_cursor {
	struct sl_idmap threads;
	SL_VECTOR(struct sl_consumed) consumed;
	SL_VECTOR(struct sl_item) records; /* records that no pass has taken yet */
	struct sl_span source;		   /* of the last record that was kept */
	char *ring;			   /* path of the ring; NULL: there was none */
	uid_t ring_owner;
	bool begun;		 /* a pass has begun */
	bool asleep;		 /* the recording slept when the trace was opened */
	uint64_t asleep_written; /* the ring's asleep_written at that time */
	unsigned last_file;	 /* number of the last open file */
};

void sl_cursor_free(struct sl_cursor *cursor);

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
