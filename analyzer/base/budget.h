/* SPDX-License-Identifier: MIT */
/*
 * Limits what one reader may use, so that a hostile file has a bounded cost.  Time, by the processor clock of its thread: a
 * minute, and a second more for each megabyte on disk (an honest trace or library takes a thirtieth of that).  Files: a
 * million in one command.  STORMLOG_READ_SECONDS and STORMLOG_READ_FILES change these limits; memory is limited by pool.h.
 * The reader itself reports what exceeded a limit, with file and place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct stat;

struct sl_budget {
	uint64_t left_ns;
	bool said; /* for the reader: it has been reported */
};

/* bytes: size on disk of what is to be read, without holes (sl_budget_size).  Time is charged from the last sl_budget_resume on. */
void sl_budget_begin(struct sl_budget *budget, uint64_t bytes);
uint64_t sl_budget_size(const struct stat *st);

/* The thread did something else in between, which is not charged. */
void sl_budget_resume(void);

/* Charges the time that this thread used since its last question about any budget.  True: stop reading. */
bool sl_budget_spent(struct sl_budget *budget);

/* How many files and folders one search may visit. */
uint64_t sl_budget_files(void);

/* How many bytes the analysis of a run may take whose files take so much; an export has a row for each event, and may take more. */
uint64_t sl_budget_written(uint64_t bytes_on_disk);
uint64_t sl_budget_exported(uint64_t bytes_on_disk);

/* How many bytes of texts, names and stacks a run may have kept whose files take so much on the disk. */
uint64_t sl_budget_kept(uint64_t bytes_on_disk);
