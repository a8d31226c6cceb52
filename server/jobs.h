/* SPDX-License-Identifier: MIT */
/* A queue of jobs for packs (work.h): first come, first taken.  The caller locks. */
#pragma once

#include "analyzer/base/map.h"
#include "analyzer/base/vector.h"
#include "server/packs.h"

struct sl_job {
	char pack[SL_PACKS_NAME + 1], after[SL_PACKS_NAME + 1]; /* after "": only the pack is worked on */
	uint64_t from_ns, to_ns;				/* of a window; to_ns 0: the first report of the pack */
};

/* All zeroes is an empty queue. */
struct sl_jobs {
	SL_VECTOR(struct sl_job) list;
	size_t taken;	       /* the first so many of the list */
	struct sl_map waiting; /* keys of the others; the word of one that was taken is 0 */
};

void sl_jobs_put(struct sl_jobs *jobs, const struct sl_job *job);
bool sl_jobs_has(const struct sl_jobs *jobs, const struct sl_job *job);
size_t sl_jobs_count(const struct sl_jobs *jobs);
/* The count is not 0. */
struct sl_job sl_jobs_take(struct sl_jobs *jobs);
void sl_jobs_free(struct sl_jobs *jobs);
