/* SPDX-License-Identifier: MIT */
/*
 * The clock of a place: what ticks while the loop around the place goes on.  It is the entries of a numbered label (a step, a
 * backward pass), or the births of another path of the same threads.  Other work of the program moves no clock, so a place is
 * judged by the ticks of its own loop, as if the run had ended when that loop ended for the last time (doc/analyzer.md, Leaks).
 *
 * A moment is a burst of the place's births with nothing of another path between them; a gap lies between two moments.
 */
#pragma once

#include "analyzer/analyses/leak_windows.h"
#include "analyzer/report/report.h"

#define SL_CLOCK_GAPS  0.8 /* share of the gaps in which a clock ticks */
#define SL_CLOCK_PACES 3   /* of the largest gaps: so long after the last moment, the place no longer belongs to what goes on */

struct sl_leak_clock {
	const struct sl_label *label; /* whose entries are the ticks; NULL: */
	const struct sl_track *path;  /* whose births are; NULL too: the place has no clock */
	bool of_steps;		      /* the label is that of the steps or the backward passes */
	bool full;		      /* what ticked between its moments went on without the place */
	uint64_t until_ns;	      /* ticks count until then: the loop's last birth, where they went on without it */
	bool again;		      /* the loop's function ran once more afterwards, from another line */
	bool ended;		      /* other work came after the place's last moment */
	bool sets_up;		      /* all that ticks keeps most of its blocks to the end */
	bool keeps_most; /* of the paths that tick in its gaps, and itself, half keep half of their blocks to the end */
	unsigned bouts;	 /* times that the loop ran */
	bool even_bouts; /* each had about as many births */
};

/* end_ns: when its births may have ended. */
void sl_leak_clock_find(const struct sl_model *model, const struct sl_track *track, uint64_t end_ns, struct sl_leak_clock *clock);

/* Sets what the windows have as the place's own clock, which there is. */
void sl_leak_clock_put(const struct sl_model *model, const struct sl_leak_clock *clock, struct sl_leak_windows *series);

/* When the clock ticked last; 0: there is none. */
uint64_t sl_leak_clock_end(const struct sl_leak_clock *clock);
