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

struct sl_budget {
	uint64_t left_ns;
	bool reported; /* set by the reader when it has reported that the budget is used up */
};

/* bytes: size on disk of what is to be read, without holes (sl_budget_size).  Time is charged from the last sl_budget_resume on. */
void sl_budget_begin(struct sl_budget *budget, uint64_t bytes);
uint64_t sl_budget_size(int fd);

/* The thread's time since its last call here is not charged. */
void sl_budget_resume(void);

/* Charges the processor time that this thread used since its last call here, for any budget.  True: stop reading. */
bool sl_budget_spent(struct sl_budget *budget);

/* How many files and folders one search may visit. */
uint64_t sl_budget_files(void);

/* Most bytes of an analysis/ folder, by the size of the run's files; an export has a row for each event and may be larger. */
uint64_t sl_budget_written(uint64_t bytes_on_disk);
uint64_t sl_budget_exported(uint64_t bytes_on_disk);

/* Limits the bytes of texts, names and stacks kept in memory for a run, by the size of its files on disk. */
uint64_t sl_budget_kept(uint64_t bytes_on_disk);
