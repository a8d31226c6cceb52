/* SPDX-License-Identifier: MIT */
/*
 * Which blocks outlived a window of time, by site.  They tell, without the events, what was born in any series of windows and still
 * held at its end.  Windows have equal width; when there are too many windows or rows, two windows become one.
 *
 * A row whose `ended` equals its `born` counts all births of that window.  Any other row counts those of them that ended in a later
 * window, or that live at the end (SL_SURVIVORS_LIVE).  Blocks in no such row ended in the window in which they were born.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/vector.h"
#include "analyzer/trace/idmap.h"

#define SL_SURVIVORS_WINDOWS 128
#define SL_SURVIVORS_LIVE    255
#define SL_SURVIVORS_MAX     131072 /* most rows */

struct sl_stay {
	uint32_t site;
	uint8_t born, ended, size_class; /* size_class: of sl_lives_class */
	uint64_t bytes, blocks;
};

struct sl_stays {
	uint64_t begin_ns, width_ns; /* begin of the first window; width 0: no block was born yet */
	uint64_t next_ns;	     /* end of the present window */
	unsigned now;		     /* number of the present window */
	bool given_up;		     /* there are too many sites for any width */
	SL_VECTOR(struct sl_stay) rows;
	struct sl_idmap ids; /* the members before the counts -> row number */
	uint32_t *last;	     /* by site: 1 + the row of its last birth, 0: none */
	size_t last_count, last_capacity;
};
