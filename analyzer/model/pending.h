/* SPDX-License-Identifier: MIT */
/* The last sample of a device waits until no call can follow that had begun before it was taken. */
#ifndef ANALYZER_MODEL_PENDING_H
#define ANALYZER_MODEL_PENDING_H

#include "analyzer/model/model.h"

/* Known memory of the device is about to change by `bytes`, in the call being applied. */
void sl_pending_change(struct sl_model *model, struct sl_device_state *device, int64_t bytes);
/* The waiting sample, if there is one, counts: less what was held while it was taken. */
void sl_pending_settle(struct sl_model *model, struct sl_device_state *device);

#endif
