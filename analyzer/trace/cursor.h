/* SPDX-License-Identifier: MIT */
/*
 * How far the passes over a growing trace have come (trace.h).  Events of a thread are numbered from 0 in slot order, whether a
 * frame or the ring has them; since an outer call takes effect after those inside it, what is taken is a prefix and some more.
 */
#ifndef ANALYZER_TRACE_CURSOR_H
#define ANALYZER_TRACE_CURSOR_H

#include <stdbool.h>

#include "analyzer/base/vector.h"
#include "analyzer/trace/idmap.h"
#include "analyzer/trace/object.h"

struct sl_item;

struct sl_taken {
	uint64_t base;		    /* number of the first event of the first frame that is kept, or of the ring */
	uint64_t prefix;	    /* all below it are taken */
	uint64_t next;		    /* slots below it are in files */
	uint64_t dropped;	    /* slots below it were in frames that are not kept */
	SL_VECTOR(uint64_t) beyond; /* taken as well, ascending */
};

struct sl_cursor {
	struct sl_idmap threads;
	SL_VECTOR(struct sl_taken) taken;
	SL_VECTOR(struct sl_item) records; /* that no pass has taken */
	struct sl_span source;		   /* of the last record that was kept */
	char *ring;			   /* its path; NULL: there was none */
	bool begun;			   /* there was a pass */
	bool asleep;			   /* it was when it was opened */
	uint64_t asleep_written;	   /* and had written so much of it */
	unsigned last_file;		   /* number of the last that is open */
};

struct sl_taken *sl_cursor_of(struct sl_cursor *cursor, uint32_t thread);
bool sl_cursor_has(const struct sl_taken *taken, uint64_t number);
void sl_cursor_take(struct sl_taken *taken, uint64_t number);
void sl_cursor_free(struct sl_cursor *cursor);

#endif
