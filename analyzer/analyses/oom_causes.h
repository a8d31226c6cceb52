/* SPDX-License-Identifier: MIT */
/* What preceded an out-of-memory error: a request, a step or a place unlike earlier ones. */
#pragma once

#include "analyzer/model/state/units.h"
#include "analyzer/report/report.h"

/* text: the end of a sentence */
struct sl_oom_causes {
	struct sl_story fact;
	char text[800], advice[400];
};

/* True: the trace tells what led to the error. */
bool sl_oom_causes_tell(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom,
			const struct sl_account *account);

/* A second try, at another line of one function, which failed because what the first had got was still held. */
bool sl_oom_causes_retry(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom);

/*
 * One or several places grew until no memory was left, or places only took memory, as loading a model does.  False: none of
 * them held a large share.
 */
bool sl_oom_causes_grew(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom);

/*
 * ", most of it at notebook.py:9 explore": the place that held most in the largest other process, by that process's peak; or
 * where its context was made, if that is most of it; "" if it was not recorded.  The text also says if this process holds most
 * at the same line, or if the place leaks.  Returns the advice, static.
 */
const char *sl_oom_causes_others(char *out, size_t size, struct sl_process *process, const struct sl_oom *oom,
				 const struct sl_account *account);

/* "%s less would have ..." */
#define SL_SPIKE_TIMES 2 /* so many times the largest before: a spike */

#define SL_WOULD_PASS "would have let this request pass"

/* For what grows, and for what had not all been asked for yet: a later request would fail. */
#define SL_BUT_ONCE ", but not what comes after it"

/* Writes as advice: what to do, and how much less of it the request lacked. */
void sl_oom_causes_advise(struct sl_oom_causes *story, const struct sl_oom *oom, const char *what, const char *but);

/*
 * True: the program freed no block of the device for a while.  The trace then cannot show which blocks it keeps, and which it needs
 * at once.
 */
bool sl_oom_causes_first_rise(const struct sl_oom *oom);

/* What the request takes beyond what was free. */
static inline uint64_t sl_oom_causes_missing(const struct sl_oom *oom)
{
	return sl_units_taken(oom) > oom->free_bytes ? sl_units_taken(oom) - oom->free_bytes : 0;
}

/* The largest leak on the device of the error, else the largest place that may be one; NULL: neither has known bytes. */
const struct sl_kept *sl_oom_causes_leak(const struct sl_process *process, const struct sl_oom *oom);

/*
 * What the place of sl_oom_causes_leak held when memory ran out, as bytes and in words (at most 300 bytes).  0: there is no such
 * place, or it was not among the largest holders then.
 */
uint64_t sl_oom_causes_leaked(char *out, size_t size, struct sl_process *process, const struct sl_oom *oom);

/* "requests at train.py:7 forward grew: ...", for a place whose requests got larger; "" where there is none. */
void sl_oom_causes_larger(char *out, size_t size, struct sl_process *process, const struct sl_heuristics *found);
