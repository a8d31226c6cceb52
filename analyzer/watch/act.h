/* SPDX-License-Identifier: MIT */
/* What an alert does: a message is said here, the rest is the doer's (doer.h). */
#ifndef ANALYZER_WATCH_ACT_H
#define ANALYZER_WATCH_ACT_H

#include "analyzer/watch/watch.h"

/* Before anything of a trace is read, and before the program confines itself.  The rules outlive it.  quiet: no messages. */
struct sl_act;
struct sl_act *sl_act_new(const struct sl_rule *rules, size_t count, bool quiet);
void sl_act_free(struct sl_act *act); /* waits a while for what is under way */

void sl_act_on(struct sl_act *act, const struct sl_alert *alert);

#endif
