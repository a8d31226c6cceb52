/* SPDX-License-Identifier: MIT */
/*
 * What a framework's user was about to need, where the trace proves it: the optimizer's state of the first step, a tensor that is
 * made again larger each time, the activations of batches without a backward pass, key-value caches, another framework's pool.
 * Main thread only, since symbols are read.
 */
#pragma once

#include "analyzer/analyses/oom_causes.h"
#include "analyzer/fit/window.h"

/* True: one of these left no room for the request; the story names it.  fit: the process's requests; NULL: they are not known. */
bool sl_demand_tell(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom, struct sl_fit_process *fit);
