/* SPDX-License-Identifier: MIT */
/*
 * The instants at which a framework's allocator held most, by the totals that it reports with its blocks: the highest `allocated`,
 * and the highest `reserved` (of equal ones the one with the highest `allocated`). A fold keeps what was live then.  Writer thread
 * only.
 */
#pragma once

#include <stdint.h>

#include "common/event.h"

#define SL_PEAKS_MAX 16 /* two for each device; further devices have none */

struct sl_peak {
	int64_t device;
	uint64_t ns;		 /* 0: none yet */
	uint64_t most, of_those; /* `most` is compared first, `of_those` among equal ones */
};

/* After fork: forgets the parent's instants. */
void sl_peaks_prepare(void);

/* Looks at events that are being written. */
void sl_peaks_note(const struct sl_event *events, unsigned count);

/* Gives the instants up to now, each once; returns how many. */
unsigned sl_peaks_copy(struct sl_peak peaks[SL_PEAKS_MAX]);
