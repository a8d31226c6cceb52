/* SPDX-License-Identifier: MIT */
/*
 * By how much the clocks of a run's hosts may differ.  Evidence: making a communicator of all ranks returns on no rank
 * before it has begun on every rank, so that each pair of such calls bounds the difference from both sides.  Without it,
 * what the user says, or an assumption.
 */
#ifndef ANALYZER_REPORT_SKEW_H
#define ANALYZER_REPORT_SKEW_H

#include "analyzer/report/report.h"

#define SL_SKEW_NS 1000000000ull /* assumed: what hosts that follow a time server stay within */

/* Fills report->skew; processes are replayed. */
void sl_skew_bound(struct sl_report *report);

/* "340 ms, by which clocks of hosts may differ (3 communicators of all ranks show it)" */
void sl_skew_describe(const struct sl_skew *skew, char *out, size_t size);

/* Both processes' clocks are one. */
bool sl_skew_same_host(const struct sl_process *a, const struct sl_process *b);

#endif
