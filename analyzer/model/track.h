/* SPDX-License-Identifier: MIT */
/*
 * The course of each place over the run, in bounded memory: how many blocks or objects were born and died there, and the least
 * that was held in each of at most SL_TRACK_WINDOWS windows.  A window is so many births of the place itself, so that a place
 * that adds every 50th step is seen as well as one that adds in each, and neither set-up nor an idle hour bends it.
 *
 * A track is a stack with its recursion folded (whatever thread or label it ran under), a kind and a device.
 */
#ifndef ANALYZER_MODEL_TRACK_H
#define ANALYZER_MODEL_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/model/swing.h"

#define SL_TRACK_WINDOWS 32

/* What is counted as blocks are, behind the kinds of memory. */
enum sl_object {
	SL_OBJECT_CONTEXT = 32,
	SL_OBJECT_MODULE,
	SL_OBJECT_POOL,
	SL_OBJECT_GRAPH,
	SL_OBJECT_EXEC,
	SL_OBJECT_END,
};

struct sl_track_window {
	uint64_t begin_ns, begin_tick; /* of its first birth */
	uint64_t least_bytes, least_blocks;
};

struct sl_track {
	uint64_t caller;
	uint32_t python, native;    /* of the first birth */
	uint32_t label, last_label; /* texts of definitions, of the first and the last birth; 0: none */
	unsigned kind;		    /* enum of kinds, or sl_object */
	int device;
	uint64_t live_bytes, live_blocks, born_bytes, births;
	uint64_t most_bytes;	    /* the largest that was born */
	uint64_t most_blocks;	    /* that lived at once */
	uint64_t usual_bytes;	    /* the second highest rise of live_bytes (swing.h) */
	uint64_t first_ns, last_ns; /* of births */
};

/* What only the replay and the analyses of the process itself ask for; gone after them (sl_replay_rest). */
struct sl_track_course {
	uint64_t hash;
	struct sl_swing swing;			     /* of live_bytes */
	uint64_t last_tick, first_event, last_event; /* of births: among all of them, and in events of the process */
	struct sl_track_window *windows;
	uint32_t count, capacity;
	uint32_t newest_ended; /* site + 1 of the newest block, which was freed before another was asked for; 0: it lives */
	uint64_t births_per_window, births_in_last;
	/* the last window's least before the deaths since `death_tick`: nothing was asked for anywhere since then if it is the last one */
	uint64_t before_bytes, before_blocks, death_tick; /* of `asked` */
	uint64_t died_bytes, died_blocks;		  /* since then */
};

struct sl_tracks {
	struct sl_track *item;
	struct sl_track_course *course; /* of each item */
	size_t count, capacity, course_capacity;
	uint32_t *slots;
	uint32_t mask;
	uint64_t ticks; /* births anywhere */
	uint64_t asked; /* births anywhere, and requests that found no memory */
	uint64_t last_birth_ns;
	uint64_t teardown_ns; /* the first death since anything was asked for; 0: there was none */
};

#endif
