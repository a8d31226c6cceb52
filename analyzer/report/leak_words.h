/* SPDX-License-Identifier: MIT */
/* Describes in words what a place keeps; the numbers come from analyses/leak.h. */
#pragma once

#include "analyzer/report/report.h"

/* "blocks of pinned host memory", "tensors", "context": what so many of a kind are called; static. */
const char *sl_leak_words_noun(unsigned kind, bool many);
/* How fast a place keeps: so much each `steps` steps or rounds, or each `ns` of time where no steps are known. */
struct sl_leak_pace {
	double amount; /* bytes, or objects where they are counted */
	double blocks; /* in which it comes; 0: in one, or it is not known */
	double steps;  /* of the label, or rounds, from one time to the next; 0: not known */
	double ns;     /* the same in time; of all that is kept, where it came at once */
	bool whole;    /* steps is a whole number */
	bool at_once;  /* it came in a small part of the run, in a few rounds */
};
struct sl_leak_pace sl_leak_words_pace(const struct sl_process *process, const struct sl_leak_line *line);
/* ", in forward": the range of its blocks, where the rate does not name it; ", called CuPy array": their pool's word; else "". */
void sl_leak_words_label(char *out, size_t size, const struct sl_process *process, const struct sl_leak_line *line);
/* Birth of the first kept block; in older summaries the place's first. */
uint64_t sl_leak_words_since(const struct sl_leak_line *line);
/*
 * True: another process of the same program, which leaks too, ran before this one or after it.  What a process keeps goes with it;
 * the next begins anew.
 */
bool sl_leak_words_in_turns(const struct sl_process *process);
/*
 * Seconds until the device has no room for more of what leaks there, above the most that was in use: of all places of the
 * process, and of the run's other processes.  Negative: not known, or they leak in turns.  Of a process that still runs it looks
 * no further ahead than the places have leaked so far, as all live views do, because a cache that fills would raise alarms.
 * *places: how many leak there.
 */
double sl_leak_words_full_in(const struct sl_process *process, int device, unsigned *places);

/* ", all by thread 4986, ...", where one of several threads that allocate there keeps nearly all that is left; else "". */
const char *sl_leak_words_thread(char *out, size_t size, const struct sl_process *process, const struct sl_leak_line *line);

/* "; the stacks are cut ...", where callers of the place may be missing; else "". */
const char *sl_leak_words_cut(const struct sl_process *process, const struct sl_leak_line *line);

/* Adds what another place keeps; the track stays that of `to`. */
void sl_leak_words_add(struct sl_leak_line *to, const struct sl_leak_line *one);
