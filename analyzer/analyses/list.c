/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "analyzer/analyses/analysis.h"

/* `leaks_by_line` is first: others do not repeat what it has reported.  `heuristics` is last: it is silent where others explain. */
#define ANALYSES(A)                                                                                                                \
	A(leaks_by_line)                                                                                                           \
	A(leaks)                                                                                                                   \
	A(growth)                                                                                                                  \
	A(accounts)                                                                                                                \
	A(retried)                                                                                                                 \
	A(hidden)                                                                                                                  \
	A(ranks) A(strays) A(sharing) A(roomless) A(frees) A(threads) A(host) A(spikes) A(overlap) A(would_fit) A(heuristics)

#define DECLARED(name) extern const struct sl_analysis sl_analysis_##name;
ANALYSES(DECLARED)

#define ENTRY(name) &sl_analysis_##name,
const struct sl_analysis *const sl_analyses[] = {ANALYSES(ENTRY) NULL};
