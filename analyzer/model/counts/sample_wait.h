/* SPDX-License-Identifier: MIT */
/* A device's last sample waits until no later call can have begun before it was taken. */
#pragma once

#include "analyzer/model/state/model.h"

/* The known memory of the device is about to change by `bytes`, in the call being applied; 0: it ran out. */
void sl_sample_wait_change(struct sl_model *model, struct sl_device_state *device, int64_t bytes);
/* If a sample is waiting, it is used now: its figure minus what was held while it was taken. */
void sl_sample_wait_settle(struct sl_model *model, struct sl_device_state *device);
/*
 * How well a context's size is known.  NULL: by calls.  "at most": by samples, which include unnamed memory of its process.
 * "about": each of these samples was taken while memory came or went.
 */
const char *sl_sample_wait_context_bound(const struct sl_device_state *device);
/* What the process's contexts take: those of unknown size as much as the ones that a sample showed.  0: not known. */
uint64_t sl_sample_wait_contexts(const struct sl_device_state *device);
