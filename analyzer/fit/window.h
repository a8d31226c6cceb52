/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of PyTorch's as a recording: the places of blocks before its first event, and the requests from then on.  The trace
 * that analyzer/snapshot/ makes of it has both.
 */
#pragma once

#include "analyzer/fit/recording.h"

#define SL_FIT_NEWEST	  15	     /* of 2.N: the newest release whose rules are known */
#define SL_FIT_EVENTS_MAX 1000000ull /* of a process: a report reads no more of them once more */
#define SL_FIT_WINDOW_MIN 10	     /* events; a file with fewer has no window (analyzer/snapshot/convert.h) */

/*
 * Reads a recording or a snapshot.  The recordings point into `process`: do not move it.  alone: the question is of another device
 * than the recorded one, on which its neighbours are not.
 */
void sl_fit_record(struct sl_fit_process *process, struct sl_trace *trace, const char *session, bool alone);

/*
 * The order in which blocks from before the window are requested.  WITH_GAPS: by address, together with the free pieces between
 * them, which are freed afterwards.  A segment that was made for a block that is gone is requested whole before its pieces.
 */
enum sl_fit_first { SL_FIT_BY_ADDRESS, SL_FIT_BY_SIZE, SL_FIT_WITH_GAPS, SL_FIT_FIRSTS };

/* The same requests, and before them those of the blocks that were there.  The caller frees ops, reserved and times. */
struct sl_fit_recording sl_fit_from_nothing(const struct sl_fit_recording *recording, enum sl_fit_first first);

/* The same without the segments that were free before the first request.  The caller frees seeds. */
struct sl_fit_recording sl_fit_without_cache(const struct sl_fit_recording *recording);
