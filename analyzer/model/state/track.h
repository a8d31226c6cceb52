/* SPDX-License-Identifier: MIT */
/*
 * The course of each site over the run, in bounded memory: how many blocks or objects began and ended there, and the least that
 * was held in each of at most SL_TRACK_WINDOWS windows.  A window is a number of births at this site.  So a site that adds a
 * block every 50th step is found as well as one that adds a block in each step, and start-up or an idle hour does not distort
 * it.
 *
 * A track is a stack with recursion folded (whatever its thread or label), a kind and a device.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/base/vector.h"
#include "analyzer/model/state/rise.h"
#include "analyzer/trace/stack.h"

#define SL_TRACK_WINDOWS  32
#define SL_TRACK_PAUSE_NS 200000 /* between two frees, in which the program did something else */

/* Objects that are counted like blocks; the numbers continue those of the kinds of memory. */
enum sl_object {
	SL_OBJECT_CONTEXT = 32,
	SL_OBJECT_MODULE,
	SL_OBJECT_POOL,
	SL_OBJECT_GRAPH,
	SL_OBJECT_EXEC,
	SL_OBJECT_STREAM,
	SL_OBJECT_EVENT,
	SL_OBJECT_REFERENCE, /* a further reference to physical memory */
	SL_OBJECT_EXTERNAL,  /* memory of another API or process */
	SL_OBJECT_END,
};

struct sl_track_window {
	uint64_t begin_ns, begin_tick; /* time and tick of the window's first birth */
	uint64_t least_bytes, least_blocks;
	uint64_t born_bytes;
	uint64_t late_tick;		    /* of `asked` */
	uint32_t ended_blocks, late_blocks; /* blocks born here that were freed; late_blocks: since late_tick */
};

struct sl_track {
	struct sl_stack stack;		   /* stack of the first birth */
	uint32_t last_label;		   /* text id: label of the last birth; 0: none */
	uint32_t live_blocks, most_blocks; /* most_blocks: most that lived at once */
	int16_t device;
	uint8_t kind;  /* a kind of memory, or enum sl_object */
	uint8_t turns; /* how often in succession all that lived was freed only after as much again was made; at most 255 */
	uint64_t live_bytes, born_bytes, births;
	uint64_t most_bytes;	    /* size of the largest block */
	uint64_t usual_bytes;	    /* the second highest rise of live_bytes (rise.h) */
	uint64_t first_ns, last_ns; /* of the first and the last birth */
};
_Static_assert(sizeof(struct sl_track) == 88, "the cost of each place of each rank");

/* Needed only by the replay and by analyses of a single process; freed afterwards (sl_replay_rest). */
struct sl_track_course {
	uint64_t hash;
	struct sl_swing swing; /* swings of live_bytes */
	/* The last birth's number among all births, and the first and last birth's event numbers in the process. */
	uint64_t last_tick, first_event, last_event;
	uint64_t launches; /* of graphs, before the last birth */
	uint64_t bursts;   /* groups of births between which nothing was born elsewhere */
	uint64_t last_death_ns;
	/*
	 * turn_bytes: what lived at the last birth after deaths; turn_left: what of it still lives; turn_ns: the last death
	 * before it
	 */
	uint64_t turn_bytes, turn_left, turn_ns;
	bool younger_died, died; /* since the last birth: a block younger than turn_ns died; any block died */
	/*
	 * when live_bytes last rose by two of the largest blocks: live_bytes, births so far; crest_gap: most births between
	 * such rises
	 */
	uint64_t crest_bytes, crest_births, crest_gap;
	struct sl_track_window *windows;
	uint32_t count, capacity;
	/* 1 + site of the newest block if that was freed before another was asked for; 0: it lives */
	uint32_t newest_ended;
	uint32_t larger; /* births larger than all before them */
	uint64_t births_per_window, births_in_last;
	uint64_t lived;	     /* the most births that a freed block outlived, rounded to a window */
	uint64_t late_lived; /* the same for blocks freed since death_tick */
	/*
	 * the last window's minimum before the deaths since `death_tick`; if that is the last tick, nothing was allocated
	 * anywhere since
	 */
	uint64_t before_bytes, before_blocks, death_tick; /* of `asked` */
	uint64_t died_bytes, died_blocks;		  /* freed since then */
	double died_ns;					  /* the sum of the times from teardown_ns until each of these was freed */
	uint64_t paused;				  /* so many of these after a pause; see pauses */
	uint64_t pauses;				  /* of all tracks, when one of its blocks was freed last */
};

struct sl_tracks {
	struct sl_track *item;
	struct sl_track_course *course; /* course of each item */
	size_t count, capacity, course_capacity;
	uint32_t *slots;
	uint32_t mask;
	SL_VECTOR(uint64_t) pythons, natives; /* the hash of each of these stacks; 0: not read yet */
	uint64_t ticks;			      /* births at all sites */
	uint64_t asked;			      /* births at all sites plus requests that failed */
	uint64_t launches;		      /* of graphs */
	uint64_t last_birth_ns;
	uint64_t teardown_ns; /* first death after which nothing was allocated any more; 0: none */
	/* the end of the last call that freed; how often the program did something else for SL_TRACK_PAUSE_NS before the next */
	uint64_t freed_ns, pauses;
};
