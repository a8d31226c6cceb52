/* SPDX-License-Identifier: MIT */
/* Writes lines over time as a limited number of samples of a session, and the peak. */
#pragma once

#include "analyzer/upstream/maker.h"

/* One sample for each group of bins, where the process held most in it; if several are equal, where the device held most. */
void sl_session_samples_device(struct sl_maker *m, const struct sl_device_state *device, unsigned samples);

void sl_session_samples_peak(struct sl_maker *m, const struct sl_device_state *device);

/* For a process without a device, as Stormlog's CPU tracker does it: each change of its resident memory, and the peak. */
void sl_session_samples_resident(struct sl_maker *m, const struct sl_line *rss, unsigned samples);
