/* SPDX-License-Identifier: MIT */
/*
 * Which variables of the program hold the blocks of a place, as Python itself told it (stormlog-run --dry or --holders).  A path
 * decides nothing about a leak: it says what to look at.  Texts belong to `out`.
 */
#pragma once

#include "analyzer/report/report.h"

struct sl_held_by {
	char text[256];	  /* the members below point into it */
	const char *path; /* "trace[*]", "engine.sessions._by_id[*].layers[*].keys", "net.layers.0.weight" */
	const char *how;  /* global, attribute, local, closure, default, cache, graph (of autograd, which `path` leads to), cycle */
	const char *container;	/* of the first [*] of the path: "list", "dict", "deque", ...; "": none */
	const char *file;	/* where the variable is: its module's file, its function's, its class's; "": not known */
	const char *function;	/* of a local; "": none */
	unsigned line;		/* where that function was; 0: unknown */
	char variable[160];	/* the path up to its first [*]: what one writes in the source */
	const char *last;	/* the name in it by which a statement has it: "seen" of "Meter.seen" */
	uint64_t blocks, bytes; /* of the place, that it held when it held most */
	uint64_t whole;		/* bytes that it held of all places */
	uint64_t of;		/* bytes of the place, then, of which these are a part */
	uint64_t seen;		/* bytes of them that it can use: fewer where it has views */
	uint64_t named, among;	/* the look stands for so many of all blocks, since its budget ended it; 0: it saw all */
};

/*
 * Fills `out` with the variables that hold blocks of a line, largest first, at most `max_count`.  Returns their number; 0: Python
 * did not tell.  track: one of the line's, in the process's model; NULL: all lines.
 */
size_t sl_held_by_take(const struct sl_process *process, const struct sl_track *track, struct sl_held_by *out, size_t max_count);

/* Takes a text of the trace apart; blocks and bytes are 0.  False: it is none of a variable. */
bool sl_held_by_read(const char *text, struct sl_held_by *out);
