/* SPDX-License-Identifier: MIT */
/* Fields computed from the counters of one event, and of a session as a whole. */
#pragma once

#include "analyzer/upstream/records/series.h"

struct sl_derived_event {
	int64_t allocator_gap_bytes; /* reserved but not allocated, never below 0 */
	bool has_utilization, has_fragmentation, degraded_collector;
	double utilization;   /* allocated / device total */
	double fragmentation; /* gap / reserved */
};

void sl_derived_write_event(struct sl_json *j, const char *key, const struct sl_v3_event *event);

/* derived_session: peak utilization, mean fragmentation, whether it was interrupted (its last event is no stop). */
void sl_derived_write_session(struct sl_json *j, const char *key, const struct sl_series *all);
