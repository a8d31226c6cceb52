/* SPDX-License-Identifier: MIT */
/*
 * A trace that still grows is read in passes.  A pass gives each event that no pass has taken, and may end at any item:
 *
 *	sl_live_passes_begin(trace);
 *	while (sl_live_passes_next(trace)) {
 *		order = sl_order_new(trace);
 *		while ((item = sl_order_next(order)) && wanted(item))
 *			sl_order_take(order);
 *		sl_order_suspend(order);
 *	}
 *
 * What was given and not taken (an item that was not wanted, a call in flight) is given again by the next pass.  An event may come
 * whose time lies before that of one taken earlier: its thread was between the stamp and the ring.
 */
#pragma once

#include "analyzer/trace/trace.h"

void sl_live_passes_begin(struct sl_trace *trace); /* To be called before the first pass. */
/* Reads what was written since.  False: the trace must be opened anew, because files were folded that had not been read. */
bool sl_live_passes_next(struct sl_trace *trace);
