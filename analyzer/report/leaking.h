/* SPDX-License-Identifier: MIT */
/*
 * What leaks, each place once: the places that analyses/kept.c finds by births and deaths, and those that only their blocks
 * left at the end show (analyses/leaks.c: few births, or a folded trace).  One line of code is one place in however many
 * processes.  All outputs count these.
 */
#pragma once

#include "analyzer/report/report.h"

struct sl_leaking_place {
	unsigned process;	    /* index: where most of it is */
	const struct sl_kept *kept; /* of that process; NULL: only what was left shows it */
	const struct sl_leak *leak; /* the same, where kept is NULL */
	double weight;		    /* of it, in that process */
	unsigned processes, last;   /* that leak there, and the last of them */
	uint64_t bytes;		    /* of all processes; objects whose cost is not known add nothing */
	uint64_t first_bytes;	    /* of the first of them */
	bool uneven;		    /* not all have as much */
	struct sl_stack stack;	    /* of that process */
	const char *where;	    /* its line, sl_leaking_line; of the list */
	bool told;		    /* on the terminal */
};

struct sl_leaking {
	SL_VECTOR(struct sl_leaking_place) place; /* largest first */
	struct sl_map names;
};

/* All zeroes is an empty list. Main thread only. */
void sl_leaking_take(struct sl_leaking *list, struct sl_report *report);
void sl_leaking_free(struct sl_leaking *list);
uint64_t sl_leaking_bytes(const struct sl_leaking *list);
/*
 * Places of one process that keep as often as place `first`, since the same moment, below one line: what keeps the one keeps
 * the others, as a graph does its states.  Or nearly all that ask through one helper.  Sets `with` of each of them and of itself;
 * returns their number, 1 where it leaks alone, with "below " that line and its caller, or "through " the helper, in `owner`.
 */
size_t sl_leaking_together(const struct sl_leaking *list, struct sl_report *report, size_t first, bool *with, char *owner,
			   size_t size);
/* Whether the births of a place tell of a leak that was left; frames of both are looked at. */
bool sl_leaking_is_at(struct sl_process *process, const struct sl_leak *leak, const struct sl_kept *kept);
/* "solver.c:46 remember_state added 240 MiB in 80 blocks ...", of what was left; malloc'ed. */
char *sl_leaking_sentence(struct sl_process *process, const struct sl_leak *leak);
/* How many of them a process has on a device; -1: of the host's memory. */
unsigned sl_leaking_of(struct sl_process *process, int device);

/* "train.py:9 large": the line of a place, without what is seen through on the way to it. */
void sl_leaking_line(struct sl_process *process, struct sl_stack stack, char *out, size_t size);
