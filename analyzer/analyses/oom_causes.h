/* SPDX-License-Identifier: MIT */
/* What preceded an out-of-memory error: a request, a step or a place unlike earlier ones. */
#pragma once

#include "analyzer/model/state/units.h"
#include "analyzer/report/report.h"

/* True: the trace tells what led to the error. */
bool sl_oom_causes_tell(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom,
			const struct sl_account *account);

/* A second try, at another line of one function, which failed because what the first had got was still held. */
bool sl_oom_causes_retry(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom);

/*
 * One or several places grew until no memory was left, or places only took memory, as loading a model does.  False: none of
 * them held a large share.
 */
bool sl_oom_causes_grew(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom);

#define SL_SPIKE_TIMES 2 /* so many times the largest before: a spike */

/* What the request takes beyond what was free. */
static inline uint64_t sl_oom_causes_missing(const struct sl_oom *oom)
{
	return sl_units_taken(oom) > oom->free_bytes ? sl_units_taken(oom) - oom->free_bytes : 0;
}

/* The largest leak on the device of the error, else the largest place that may be one; NULL: neither has known bytes. */
const struct sl_leak_line *sl_oom_causes_leak(const struct sl_process *process, const struct sl_oom *oom);

/* Bytes that the place of sl_oom_causes_leak held when memory ran out.  0: there is none, or it was not among the largest then. */
uint64_t sl_oom_causes_leaked(struct sl_process *process, const struct sl_oom *oom);
