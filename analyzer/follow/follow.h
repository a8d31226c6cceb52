/* SPDX-License-Identifier: MIT */
/*
 * Recordings while they run.  What is on disk is replayed, then files and rings are read as they grow: through later files of
 * --keep, exec, fork, new ranks, and the end.  Nothing is written, no lock is taken, and the process that records does nothing for
 * it.
 *
 * 	struct sl_follow *follow = sl_follow_new();
 * 	sl_follow_add(follow, "traces/");
 * 	for (;; sleep(1)) {
 * 		sl_follow_poll(follow);
 * 		for (unsigned i = 0; i < sl_follow_count(follow); i++)
 * 			show(sl_follow_process(follow, i)->process.model);
 * 	}
 *
 * The model is the same as a report's. It stands SL_FOLLOW_BEHIND_NS behind the clock, so that the events of all threads come in
 * the order in which they took effect, and at most SL_FOLLOW_HOLD_NS behind a free that has not returned.  An event that is later
 * still is applied, and the process is replayed from its files when that costs less than a hundredth of the time since, and at its
 * end: so the final figures are those of the report.  One thread.
 */
#pragma once

#include "analyzer/report/report.h"

#define SL_FOLLOW_BEHIND_NS  20000000ull
#define SL_FOLLOW_HOLD_NS    1000000000ull
#define SL_FOLLOW_WATCHED_NS 1500000000ull /* for a trace that stormlog-attach writes, once a second */
#define SL_FOLLOW_YOUNG_S    10		   /* a trace whose file is younger may get its header, or ring, yet */

struct sl_followed {
	struct sl_process process; /* trace and model; no analyses */
	bool ended;		   /* the process has ended and everything is applied */
	bool removed;		   /* ended because the recording is gone; the process may live on, unseen */
	uint64_t applied_ns;	   /* events up to here are in the model */
	uint64_t late;		   /* events that came out of order since the last replay */
	uint64_t late_ever;	   /* out-of-order events since the process was found */
	uint64_t late_records;	   /* samples out of order: only hidden memory depends on them, so no replay before the end */
	unsigned replays;	   /* number of replays from the files, the first one included */
	uint64_t replayed_ns, replay_cost_ns;
	struct sl_follow_run *run; /* shared by the processes of a run */
	bool told;		   /* what of it could not be read was printed */
};

struct sl_follow;
struct sl_follow *sl_follow_new(void);
void sl_follow_free(struct sl_follow *follow);

/*
 * Follows a folder's newest run, living processes of its other runs, and whatever begins in it later; or the process of a
 * file or ring, of whatever run.  False: no such path (errno).
 */
bool sl_follow_add(struct sl_follow *follow, const char *path);

/*
 * Adds recordings of living processes on this node whose rings this user may read.  pid 0: all.  Returns how many rings there
 * are.
 */
unsigned sl_follow_node(struct sl_follow *follow, long pid);

/* To be called before the first path: follow only processes of this run. */
void sl_follow_only(struct sl_follow *follow, const char *run_id);

/* Reads what is new; true where anything changed. */
bool sl_follow_poll(struct sl_follow *follow);

/* Closes a process that has ended; it will not be found again.  The last process takes its place. */
void sl_follow_forget(struct sl_follow *follow, unsigned index);

/* Processes in the order in which they were found.  Pointers are valid until the next poll. */
unsigned sl_follow_count(const struct sl_follow *follow);
struct sl_followed *sl_follow_process(const struct sl_follow *follow, unsigned index);
bool sl_follow_all_ended(const struct sl_follow *follow); /* false where there is none */
