/* SPDX-License-Identifier: MIT */
/*
 * What one reader may take, so that no file of a stranger's costs without end: of time, by the processor's clock of its thread, a minute
 * and a second more for each megabyte on the disk (an honest trace or library takes a thirtieth of that); of files, a million in one
 * command.  STORMLOG_READ_SECONDS and STORMLOG_READ_FILES say otherwise.  What exceeds it is the reader's to say, with file and place.
 */
#ifndef ANALYZER_BASE_BUDGET_H
#define ANALYZER_BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct stat;

struct sl_budget {
	uint64_t left_ns;
	bool said; /* for the reader: once is enough */
};

/* bytes: what is to be read takes on the disk; holes of a file count nothing (sl_budget_size).  Charged is from the last sl_budget_resume on. */
void sl_budget_begin(struct sl_budget *budget, uint64_t bytes);
uint64_t sl_budget_size(const struct stat *st);

/* This thread did something else since: that is not charged. */
void sl_budget_resume(void);

/* Charges what this thread took since it last asked about any budget.  True: no more of it is to be read. */
bool sl_budget_spent(struct sl_budget *budget);

/* How many files and folders one search may look at. */
uint64_t sl_budget_files(void);

#endif
