/* SPDX-License-Identifier: MIT */
/*
 * Alerts a tracker of Stormlog raises while it samples, found afterwards in a series: memory use of the device at 80
 * and 95 %, jumps, fragmentation. Texts and metadata are upstream's, so that issues group the same.
 */
#pragma once

#include "analyzer/upstream/records/series.h"

struct sl_alert_thresholds {
	double warning_percent, critical_percent; /* share of the device (check_usage); 80, 95 */
	uint64_t jump_bytes;			  /* growth since the sample before; 100 MiB */
	double fragmentation;			  /* unused share of the reserved memory; 0.3 */
};

extern const struct sl_alert_thresholds sl_alert_defaults;

/*
 * Hands every alert of one rank's samples, in time order, to `alert` as an event: a copy of the sample with its own
 * type (warning, critical), context and metadata, which live in the arena.  An alert is raised when a line is crossed, and not,
 * as upstream does, at every sample beyond it. A sample of unknown device size has no
 * alerts, as upstream's.
 */
void sl_alerts_derive(const struct sl_series *samples, const struct sl_alert_thresholds *thresholds, struct sl_arena *arena,
		      void (*alert)(void *context, const struct sl_v3_event *event), void *context);
