/* SPDX-License-Identifier: MIT */
/* What preceded an out-of-memory error: a request, a step or a place unlike earlier ones. */
#pragma once

#include "analyzer/model/units.h"
#include "analyzer/report/report.h"

/* Each writes the end of a sentence. */
struct sl_story {
	char text[800], advice[400];
};

/* True: the device was full and this is the last of so many attempts; false: the trace shows no such thing. */
bool sl_story_tell(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom, const struct sl_account *account);

/*
 * A place that grew until no memory was left, or several; or that only took memory, as one does that loads a model.  False: none
 * held a good part.
 */
bool sl_story_grew(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom);

/*
 * ", most of it at notebook.py:9 explore": the place that held most in the largest other process, by that process's peak; or
 * where its context was made, if that is most of it; "" if it was not recorded.  It says so where this process holds most at the
 * same line.  Returns the advice, static.
 */
const char *sl_story_others(char *out, size_t size, struct sl_process *process, const struct sl_oom *oom,
			    const struct sl_account *account);

/* "%s less would have ..." */
#define SL_WOULD_PASS "would have let this request pass"

/* What the request takes beyond what was free. */
static inline uint64_t sl_story_missing(const struct sl_oom *oom)
{
	return sl_units_taken(oom) > oom->free_bytes ? sl_units_taken(oom) - oom->free_bytes : 0;
}

/* The place that leaks most on the device of the error, else the one of which it is not clear; NULL: none of known bytes. */
const struct sl_kept *sl_story_leak(const struct sl_process *process, const struct sl_oom *oom);

/*
 * What the place that grows fastest held when memory ran out, as bytes and in words (at most 300 bytes); where none grows,
 * the place that only took memory.  0: there is neither, or it was not among the largest holders then.
 */
uint64_t sl_story_leaked(char *out, size_t size, struct sl_process *process, const struct sl_oom *oom);

/* "what is asked for at train.py:7 forward grew: ...", of a place whose requests got larger; "" where there is none. */
void sl_story_larger(char *out, size_t size, struct sl_process *process, const struct sl_heuristics *found);
