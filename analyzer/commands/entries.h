/* SPDX-License-Identifier: MIT */
/* Prints each entry of a range (NVTX, roctx, stormlog.h, backward pass): the memory in use before and after it, and its peak. */
#pragma once

#include "analyzer/report/report.h"

#define SL_ENTRIES_ALL "*" /* as a label: every label */

struct sl_entries_how {
	const char *label; /* as in report.json: step_# */
	const char *run;   /* NULL: the newest run of a folder */
	const struct sl_only *only;
	bool json, csv; /* neither: a text for people */
	bool lines;	/* with what each line of code allocated in the entry */
};

/*
 * Entries are printed in the order in which they ended.  One that never closed comes last, without an end and a use after it. 
 * Returns an exit status of commands.h.
 */
int sl_entries_print(char **paths, const struct sl_entries_how *how);
