/* SPDX-License-Identifier: MIT */
/* What came before an out-of-memory error: a request, a step or a place unlike those before it. */
#ifndef ANALYZER_ANALYSES_STORY_H
#define ANALYZER_ANALYSES_STORY_H

#include "analyzer/report/report.h"

/* A sentence's end each. */
struct sl_story {
	char text[700], advice[400];
};

/* The error is one on a full device, the last of so many attempts; false: the trace tells none. */
bool sl_story_tell(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom, const struct sl_account *account);

/* What was asked for beyond what was free. */
static inline uint64_t sl_oom_missing(const struct sl_oom *oom)
{
	return oom->asked_bytes > oom->free_bytes ? oom->asked_bytes - oom->free_bytes : 0;
}

/*
 * What the place that grows most had when memory ran out, and how much that is in words, at most 300 bytes.  A later request that failed
 * finds more of it.  0: nothing grows, or it was not among the largest then.
 */
uint64_t sl_story_leaked(char *out, size_t size, struct sl_process *process, const struct sl_oom *oom);

#endif
