/* SPDX-License-Identifier: MIT */
/*
 * Which blocks outlived a window of time, by place: so what was born in a stretch of windows and still held at its end is known of any
 * stretch, without the events.  Windows are equally wide; when they, or the rows, get too many, two become one.
 *
 * A row whose `ended` is its `born` counts all births of that window.  Another counts those of them that ended in a later window, or
 * that live at the end (SL_STAYS_LIVE).  What is in no such row ended in the window in which it was born.
 */
#ifndef ANALYZER_MODEL_STAY_H
#define ANALYZER_MODEL_STAY_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/vector.h"
#include "analyzer/trace/idmap.h"

#define SL_STAYS_WINDOWS 128
#define SL_STAYS_LIVE	 255
#define SL_STAYS_MAX	 131072 /* rows */

struct sl_stay {
	uint32_t site;
	uint8_t born, ended, size_class; /* of sl_lives_class */
	uint64_t bytes, blocks;
};

struct sl_stays {
	uint64_t begin_ns, width_ns; /* of the first window; width 0: nothing was born yet */
	uint64_t next_ns;	     /* end of the window now */
	unsigned now;		     /* its number */
	bool given_up;		     /* places are too many for any width */
	SL_VECTOR(struct sl_stay) rows;
	struct sl_idmap ids; /* what tells rows apart -> number */
	uint32_t *last;	     /* by site: 1 + the row of its last birth, 0: none */
	size_t last_count, last_capacity;
};

#endif
