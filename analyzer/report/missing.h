/* SPDX-License-Identifier: MIT */
/*
 * What is not here of a run, so that its figures may be too low: ranks without a trace, traces that cannot be read, or not whole.
 * The gate and the screen ask for all of it, the warnings for ranks.
 */
#pragma once

#include "analyzer/report/report.h"

/*
 * Ranks of which nothing is known, though the user did not leave them out (--ranks).  A job says how many ranks it has; of several
 * runs the numbers are added.
 */
struct sl_missing {
	uint64_t ranks, of; /* how many are absent, and how many there are in the runs that lack some */
	char which[120];    /* "3, 5-7, ..." */
};

/* False: none is absent, no process says how many there are, or only some of them were asked for. */
bool sl_missing_ranks(const struct sl_report *report, struct sl_missing *absent);

/* "nothing is known of rank 3, of 4: no GPU was used there, or the trace is elsewhere"; malloc'ed. */
char *sl_missing_words(const struct sl_missing *absent);

/*
 * Calls `add` for each missing part of the run.  damaged: the part was recorded, and cannot be read.  Else it may come yet, was not
 * recorded, is in a place that is not read, or has a form that this version does not know.  subject: the process's trace, file or
 * folder, the first of several.  Returns how many.
 */
#define SL_ABSENT_EMPTY "no trace is in it" /* of a path that the user named */
#define SL_ABSENT_NEWER "written by a newer agent: parts that this version does not know were skipped"
typedef void sl_missing_told(void *context, bool damaged, const char *subject, const char *message);
unsigned sl_missing_tell(const struct sl_report *report, sl_missing_told *tell, void *context);

/* Events that the recorders of the run lost, and counted; *of: with those that are here. */
uint64_t sl_missing_events(const struct sl_report *report, uint64_t *of);

/* True: something of the run was recorded and cannot be read.  Events that the recorder lost, and counted, are none of it. */
bool sl_missing_unreadable(const struct sl_report *report);
bool sl_missing_torn(const struct sl_damage *damage); /* the same of one trace */

/* True: names of native frames are missing, since what they are looked up with ran out.  Says so on stderr, once in a process. */
bool sl_missing_say_names(void);

/* True: SL_ABSENT_NEWER holds of the trace, as far as it was read.  The other says so on stderr, once for a run: *said. */
bool sl_missing_newer(const struct sl_trace *trace);
void sl_missing_say_newer(const struct sl_trace *trace, bool *warned);
