/* SPDX-License-Identifier: MIT */
/*
 * The doer is a process that never sees a trace.  It is started before the first trace is opened and does what alerts ask for,
 * because a process that reads traces may start no program and write no file (base/sandbox.h).  The actions are in the rules,
 * which it has from the command line; it is only sent which rule, and texts for environment and input.
 *
 * An errand is one message of words, each ended by a NUL: the rule's number, the state, the name of a bundle, the trace (for
 * wake: the ring), the alert as JSON, and environment settings, which all begin with STORMLOG_ALERT_.  Anything else is
 * dropped, and control characters are removed from all texts (base/escape.h).
 *
 * A line in a file is written at once.  Bundles, webhooks and commands are processes that nobody waits for: at most
 * SL_DOER_AT_ONCE at a time, killed after SL_DOER_LONGEST_S, and up to SL_DOER_WAITING more that wait for a place.  Files get
 * at most SL_DOER_FILES bytes an hour.  Failures and omissions are printed on stderr.
 */
#pragma once

#include "analyzer/watch/rule.h"

#define SL_DOER_AT_ONCE	  4
#define SL_DOER_WAITING	  32
#define SL_DOER_LONGEST_S 60
#define SL_DOER_FILES	  (64 << 20)
#define SL_DOER_LAST_S	  5 /* time for running processes after the line is closed */

_Noreturn void sl_doer(int from, const struct sl_rule *rules, size_t count);
