/* SPDX-License-Identifier: MIT */
/* Lines over time as samples of a session, a bounded number of them, and the peak. */
#ifndef ANALYZER_UPSTREAM_SESSION_SAMPLES_H
#define ANALYZER_UPSTREAM_SESSION_SAMPLES_H

#include "analyzer/upstream/maker.h"

/* One sample a group of bins: at the maximum of what the process held in it; of several equal ones, where the device held most. */
void sl_session_samples_device(struct sl_maker *m, const struct sl_device_state *device, unsigned samples);

void sl_session_samples_peak(struct sl_maker *m, const struct sl_device_state *device);

/* A process without a device, as upstream's CPU tracker tells it: each change of its resident memory, and the peak. */
void sl_session_samples_resident(struct sl_maker *m, const struct sl_line *rss, unsigned samples);

#endif
