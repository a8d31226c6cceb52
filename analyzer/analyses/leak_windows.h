/* SPDX-License-Identifier: MIT */
/*
 * What a place kept, as numbers over the windows of its track (counts/tracks.h), and the measures by which leak_trend.c judges it.
 * "Kept" at a window is the least that the place holds from there to the end; it rises towards the end even where blocks
 * come and go at random.  "Left" at a window are the blocks born up to there that lived when the run ended; with blocks that come
 * and go at random it does not rise.  A clock is an array of count + 1 values, such as time or tick.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/model/counts/tracks.h"

#define SL_KEEPING_BIRTHS 8    /* fewer do not tell what a place does */
#define SL_KEEPING_LEVEL  0.05 /* a probability below this is more than chance */
#define SL_KEEPING_OTHERS 0.2  /* share of the births: with fewer, other places are no clock */
/*
 * A handful of calls is what a library sets up when it is used for the first time (NCCL's connections), or what each part of a
 * program makes in its first step: no leak.
 */
#define SL_KEEPING_CALLS       6     /* so many are no handful */
#define SL_KEEPING_CALL_PART   0.125 /* births nearer than this part of their mean distance came in one call */
#define SL_KEEPING_CALL_OTHERS 8     /* births of other places; with so many inside it is no longer one call */
#define SL_KEEPING_CALL_BIRTHS 64    /* own births a call; with more on average, a call is a round of work and no set-up */

struct sl_leak_windows {
	/* at the beginning of each window and at the end: nanoseconds, births of the process, births at other places */
	double time[SL_TRACK_WINDOWS + 1], tick[SL_TRACK_WINDOWS + 1], others[SL_TRACK_WINDOWS + 1];
	double own[SL_TRACK_WINDOWS + 1]; /* ticks of the place's clock (leak_clock.h); births of the process where it has none */
	bool clocked;
	double least[SL_TRACK_WINDOWS], retained[SL_TRACK_WINDOWS];
	unsigned count;
};

/* In blocks (count) or bytes.  end_ns: when births may have ended. */
void sl_leak_windows_take(const struct sl_model *model, const struct sl_track *track, bool count, uint64_t end_ns,
			  struct sl_leak_windows *series);

/*
 * Takes "left" from a series that was taken in blocks: `retained` counts the blocks born before each window's end that were left.
 */
void sl_leak_windows_take_left(const struct sl_model *model, const struct sl_track *track, const struct sl_leak_windows *counted,
			       struct sl_leak_windows *left);

/*
 * Laplace's test after the first window, with the place's own clock or the births of other places.  Returns by how many standard
 * errors the remaining blocks were born earlier than evenly spread ones.  The held amount is a walk: each death adds a step up
 * and one down.
 * 0: other places have too few births.
 */
double sl_leak_windows_decline(const struct sl_leak_windows *left, uint64_t deaths);

/* In how many calls of the program the births came: windows with little between them, by a clock of others' births, are one. */
unsigned sl_leak_windows_calls(const struct sl_leak_windows *series, const double *clock);

/* Least squares of what is kept over a clock, with the error of the slope. */
double sl_leak_windows_slope(const struct sl_leak_windows *series, const double *clock, double *error);
