/* SPDX-License-Identifier: MIT */
/* What was in use beside a process's blocks when it ran out of memory: its contexts and code, and its neighbours. */
#pragma once

#include "analyzer/model/state/model.h"

/* Takes from the device's last sample, and from what its context and code are known to take. */
void sl_neighbours_take(struct sl_oom *oom, const struct sl_device_state *device);
/*
 * Called at the first sample of a device, and when the context is known.  An error there within the second before the last
 * sample takes its neighbours and the context from it.
 */
void sl_neighbours_sampled(struct sl_model *model, const struct sl_device_state *device);
/* To be called at a sample: it may list a neighbour that came after the previous sample, at before_ns, but before an error. */
void sl_neighbours_followed(struct sl_model *model, const struct sl_device_state *device, uint64_t before_ns);
