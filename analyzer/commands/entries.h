/* SPDX-License-Identifier: MIT */
/* Each entry of a range, by NVTX, roctx, stormlog.h or a backward pass: what was in use before, after and at its peak. */
#pragma once

#include "analyzer/report/report.h"

#define SL_ENTRIES_ALL "*" /* in place of a label */

struct sl_entries_how {
	const char *label; /* as report.json writes it: step_# */
	const char *run;   /* NULL: the newest of a folder */
	const struct sl_only *only;
	bool json, csv; /* neither: for people */
	bool lines;	/* with what each line made in the entry */
};

/*
 * In the order in which they ended.  Of one that never closed, which stands last, the end and what was in use after it are unknown.
 * Returns an exit status of commands.h.
 */
int sl_entries_print(char **paths, const struct sl_entries_how *how);
