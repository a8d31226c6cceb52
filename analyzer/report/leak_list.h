/* SPDX-License-Identifier: MIT */
/*
 * The places that leak, each once.  analyses/leak.h finds most of them by births and deaths.  analyses/left_at_exit.c finds those
 * with few births, and those of a folded trace, by the blocks that are left at the end.  One line of code is one place in however
 * many processes.  All outputs count these.
 */
#pragma once

#include "analyzer/report/report.h"

struct sl_leak_list_place {
	unsigned process;		      /* index: where most of it is */
	const struct sl_leak_line *leak_line; /* of that process; NULL: only what was left shows it */
	const struct sl_leak *leak;	      /* the same, where leak_line is NULL */
	double weight;			      /* of the place in that process: bytes, or objects whose bytes are not known */
	unsigned processes, last;	      /* processes: how many leak there; last: the last of them */
	uint64_t bytes;			      /* of all processes; objects whose cost is not known add nothing */
	uint64_t first_bytes;		      /* in the first of these processes */
	bool uneven;			      /* not all hold as much there */
	struct sl_stack stack;		      /* of the place in `process` */
	const char *where;		      /* its line (sl_leak_list_line); belongs to the list */
	bool was_printed;		      /* printed on the terminal */
};

struct sl_leak_list {
	SL_VECTOR(struct sl_leak_list_place) place; /* largest first */
	struct sl_map names;
};

/* All zeroes is an empty list. Main thread only. */
void sl_leak_list_take(struct sl_leak_list *list, struct sl_report *report);
void sl_leak_list_free(struct sl_leak_list *list);
/*
 * Finds the places of one process that leak together with place `first`: at its pace, since the same moment, below one line.
 * What keeps one keeps the others, as a graph does its states.  Or nearly all places that ask through one helper.  Sets `with`
 * of each of them and of `first`.  Returns their number, or 1 if they are fewer than `least`.  owner: "below " that line and its
 * caller, or "through " the helper.
 */
size_t sl_leak_list_together(const struct sl_leak_list *list, struct sl_report *report, size_t first, size_t least, bool *with,
			     char *owner, size_t size);
/* True: what was left and what the births show is one leak: of one kind, at one line. */
bool sl_leak_list_is_at(struct sl_process *process, const struct sl_leak *leak, const struct sl_leak_line *line);
/* What a process keeps, by kind and place, so that what was left need not be compared with each. */
struct sl_leak_list_index {
	struct sl_idmap first; /* a hash of kind and place -> index into process->leaks_by_line */
	uint32_t *next;	       /* the next with the same hash; UINT32_MAX: none */
};
void sl_leak_list_index_take(struct sl_leak_list_index *index, struct sl_process *process);
void sl_leak_list_index_free(struct sl_leak_list_index *index);
/* The first at the leak's place in the order of process->leaks_by_line, then the next; sl_leak_list_is_at holds for no other. */
uint32_t sl_leak_list_first(const struct sl_leak_list_index *index, struct sl_process *process, const struct sl_leak *leak);

/*
 * Calls `take` with each leak that limits count.  What a killed process would still have freed is unknown, so of it only what grew
 * counts.  Objects are in no list of what was left: contexts, and graphs with their private pools.
 */
void sl_leak_list_left(struct sl_process *process,
		       void (*take)(void *context, struct sl_process *process, const struct sl_leak *leak), void *context);

/* "train.py:9 large": the line of a place, without the helper it allocates through. */
void sl_leak_list_line(struct sl_process *process, struct sl_stack stack, char *out, size_t size);
