/* SPDX-License-Identifier: MIT */
/*
 * The doer: a process that never sees a trace, started before the first is opened, and does what alerts ask for, because who reads
 * traces may start no program and write no file (base/confine.h).  What is done stands in the rules, which it has of the command line;
 * what is sent is which of them, and texts for its environment and input.
 *
 * An errand is one message of words, each ended by a NUL: the rule's number, the state, the name of a bundle, the trace (of wake: the ring), the alert as
 * JSON, and settings of the environment, all of which begin with STORMLOG_ALERT_.  Anything else is dropped, and what steers a
 * terminal is taken out of all texts (base/door.h).
 *
 * A line in a file is written at once; a bundle, a webhook and a command are processes that nobody waits for: at most SL_DOER_AT_ONCE
 * at a time, killed after SL_DOER_LONGEST_S, and up to SL_DOER_WAITING more wait for a place.  Files get SL_DOER_FILES bytes an
 * hour at most.  What fails or is left out is said on stderr.
 */
#ifndef ANALYZER_WATCH_DOER_H
#define ANALYZER_WATCH_DOER_H

#include "analyzer/watch/rule.h"

#define SL_DOER_AT_ONCE	  4
#define SL_DOER_WAITING	  32
#define SL_DOER_LONGEST_S 60
#define SL_DOER_FILES	  (64 << 20)
#define SL_DOER_LAST_S	  5 /* for what is under way when the line is closed */

_Noreturn void sl_doer(int from, const struct sl_rule *rules, size_t count);

#endif
