/* SPDX-License-Identifier: MIT */
/*
 * How far the clocks of a run's hosts may differ.  Evidence: the call that makes a communicator of all ranks returns on no rank
 * before it has begun on every rank.  Each such pair of calls bounds the difference from both sides.  Without evidence the
 * user's value is used, or an assumption.
 */
#pragma once

#include "analyzer/report/report.h"

#define SL_SKEW_NS 1000000000ull /* assumed: hosts that follow a time server stay within this */

/* Fills report->skew; the processes have been replayed. */
void sl_skew_bound(struct sl_report *report);

/* "340 ms, by which clocks of hosts may differ (3 communicators of all ranks show it)" */
void sl_skew_describe(const struct sl_skew *skew, char *out, size_t size);

/* True: both processes use the same clock. */
bool sl_skew_same_host(const struct sl_process *a, const struct sl_process *b);
