/* SPDX-License-Identifier: MIT */
/*
 * A swing is a rise of the bytes held, from a low to a high, that ended when half of it was given back: a step, a request, an
 * evaluation.  The largest swings are kept in constant memory, so that one far larger than the others is found.
 */
#pragma once

#include <stdint.h>

struct sl_swing {
	uint64_t low, high;	   /* of the current rise */
	uint64_t count;		   /* rises that have ended */
	uint64_t most, second;	   /* the two highest highs of these */
	uint64_t most_ns, high_ns; /* when `most` was reached; high_ns: when `high` was */
	uint64_t rose, first;	   /* rises in a row, each the highest by then; first: the high of the first of them */
};

#define SL_RISE_AGAIN 4 /* a rise so many times the highest before begins a new row */

static inline void sl_rise_end(struct sl_swing *swing)
{
	swing->count++;
	if (swing->high > SL_RISE_AGAIN * swing->most || (swing->high <= swing->most && 2 * swing->high > swing->most))
		swing->rose = 0;
	if (swing->high > swing->most) {
		swing->first = swing->rose++ ? swing->first : swing->high;
		swing->second = swing->most;
		swing->most = swing->high;
		swing->most_ns = swing->high_ns;
	} else if (swing->high > swing->second) {
		swing->second = swing->high;
	}
}

static inline void sl_rise_to(struct sl_swing *swing, uint64_t held, uint64_t now_ns)
{
	if (held > swing->high) {
		swing->high = held;
		swing->high_ns = now_ns;
		return;
	}
	if (swing->high > swing->low && (swing->high - held) * 2 > swing->high - swing->low) {
		if (held + (swing->high - swing->low) >= swing->low) /* else it was a small rise amid a fall */
			sl_rise_end(swing);
		swing->low = swing->high = held;
	} else if (held < swing->low) {
		swing->low = swing->high = held;
	}
}
