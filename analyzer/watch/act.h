/* SPDX-License-Identifier: MIT */
/* What an alert does: messages are printed here, everything else the doer does (doer.h). */
#pragma once

#include "analyzer/watch/watch.h"

/*
 * To be called before a trace is read and before the program confines itself.  The rules must outlive it.  quiet: prints no
 * messages.
 */
struct sl_act;
struct sl_act *sl_act_new(const struct sl_rule *rules, size_t count, bool quiet);
void sl_act_free(struct sl_act *act); /* waits a while for actions under way */

void sl_act_on(struct sl_act *act, const struct sl_alert *alert);
