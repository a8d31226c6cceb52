/* SPDX-License-Identifier: MIT */
/*
 * How far the passes over a growing trace have come (trace.h).  The events of a thread are numbered from 0 in slot order,
 * whether they are in a frame or in the ring.  An outer call takes effect after the calls inside it, so what was taken is a
 * prefix plus some events beyond it.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "analyzer/base/vector.h"
#include "analyzer/trace/idmap.h"
#include "analyzer/trace/object.h"

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
