/* SPDX-License-Identifier: MIT */
/*
 * What an alert does.  A message and a line in a file are written at once; a bundle, a webhook and a command are processes that
 * nobody waits for: at most SL_ACT_AT_ONCE at a time, killed after SL_ACT_LONGEST_S, and up to SL_ACT_WAITING more wait for a
 * place.  What fails is said on stderr.  One thread.
 */
#ifndef ANALYZER_WATCH_ACT_H
#define ANALYZER_WATCH_ACT_H

#include "analyzer/watch/watch.h"

#define SL_ACT_AT_ONCE	 4
#define SL_ACT_WAITING	 32
#define SL_ACT_LONGEST_S 60

struct sl_act;
struct sl_act *sl_act_new(bool quiet); /* quiet: no messages */
void sl_act_free(struct sl_act *act);

void sl_act_on(struct sl_act *act, const struct sl_alert *alert);

/* At each look: what has ended is said where it failed, what waits begins.  How many are under way or wait. */
unsigned sl_act_tend(struct sl_act *act);

#endif
