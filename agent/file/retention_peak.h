/* SPDX-License-Identifier: MIT */
/*
 * The instants at which a framework's allocator had most, by the totals it reports with its blocks: the highest
 * `allocated`, and the highest `reserved` with, among equals, the highest `allocated`.  A fold keeps what lived then.
 * Writer thread only.
 */
#pragma once

#include <stdint.h>

#include "common/event.h"

#define SL_PEAKS_MAX 16 /* two for each device; further devices have none */

struct sl_peak {
	int64_t device;
	uint64_t ns;		 /* 0: none yet */
	uint64_t most, of_those; /* compared first; the other decides among equals */
};

/* After fork: forget a parent's. */
void sl_peaks_prepare(void);

/* Looks at events that are being written. */
void sl_peaks_note(const struct sl_event *events, unsigned count);

/* Gives the instants up to now, each once; returns how many. */
unsigned sl_peaks_copy(struct sl_peak peaks[SL_PEAKS_MAX]);
