/* SPDX-License-Identifier: MIT */
/*
 * Predicts when a device will be full, from the least and the most that was in use between looks.  Programs go up and down
 * with their steps, fill caches and load weights; none of that may give a forecast.  The span is cut into twelve pieces, at
 * several lengths of a piece.  The maxima of the pieces must rise over the whole span, must still be rising, and must reach
 * the device's size within a third of the span.  Where steps differ in size and blur the maxima, the minima may do that
 * instead, with the room that is left above the maxima.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_FORECAST_PIECES 12
#define SL_FORECAST_SCALES 15 /* pieces of 1 s, 2 s, 4 s, ... 4.5 hours */

struct sl_forecast_piece {
	double least, most;
};

/* All zeroes is an empty forecast. */
struct sl_forecast {
	uint64_t begin_ns, last_ns;
	struct {
		uint64_t piece; /* the piece being filled; it began at begin_ns */
		struct sl_forecast_piece filling, filled[SL_FORECAST_PIECES];
		unsigned count; /* number of pieces filled so far */
	} scale[SL_FORECAST_SCALES];
};

/* least, most: bytes in use since the previous look.  Times do not go back: an earlier one counts as the last. */
void sl_forecast_add(struct sl_forecast *forecast, uint64_t ns, uint64_t least, uint64_t most);

/* True: at some scale the maxima or the minima rise and are still rising, however long it takes to fill the device. */
bool sl_forecast_rises(const struct sl_forecast *forecast);

/* Seconds until it holds `total`, by the scale that gives the soonest; infinite: no scale predicts it. */
double sl_forecast_full(const struct sl_forecast *forecast, uint64_t total);
