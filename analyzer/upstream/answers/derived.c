/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include <math.h>

#include "analyzer/base/stats.h"

static struct sl_derived_event derive(const struct sl_v3_event *event)
{
	static const char *const words[] = {"fallback", "degraded", "unavailable", "partial", "legacy.unknown"};
	struct sl_derived_event d = {0};

	if (event->reserved_bytes > event->allocated_bytes)
		d.allocator_gap_bytes = event->reserved_bytes - event->allocated_bytes;
	d.has_utilization = event->total_bytes > 0;
	if (d.has_utilization)
		d.utilization = sl_stats_ratio(event->allocated_bytes, event->total_bytes);
	d.has_fragmentation = event->reserved_bytes != 0;
	if (d.has_fragmentation)
		d.fragmentation = sl_stats_ratio(d.allocator_gap_bytes, event->reserved_bytes);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		d.degraded_collector = d.degraded_collector || strcasestr(event->collector, words[i]);
	return d;
}

void sl_derived_write_event(struct sl_json *j, const char *key, const struct sl_v3_event *event)
{
	struct sl_derived_event d = derive(event);

	sl_json_object(j, key);
	sl_json_int(j, "allocator_gap_bytes", d.allocator_gap_bytes);
	sl_json_double(j, "utilization_ratio", d.has_utilization ? d.utilization : NAN);
	sl_json_double(j, "fragmentation_ratio", d.has_fragmentation ? d.fragmentation : NAN);
	sl_json_bool(j, "is_degraded_collector", d.degraded_collector);
	sl_json_end(j);
}

void sl_derived_write_session(struct sl_json *j, const char *key, const struct sl_series *all)
{
	double peak = 0, sum = 0;
	size_t sized = 0, reserved = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct sl_derived_event d = derive(all->events[i]);

		if (d.has_utilization && (sized++ == 0 || d.utilization > peak))
			peak = d.utilization;
		if (d.has_fragmentation) {
			sum += d.fragmentation;
			reserved++;
		}
	}
	sl_json_object(j, key);
	sl_json_double(j, "peak_utilization_ratio", sized > 0 ? peak : NAN);
	sl_json_double(j, "avg_fragmentation_ratio", reserved > 0 ? reserved ? sum / (double)reserved : 0 : NAN);
	sl_json_bool(j, "is_session_interrupted", all->count == 0 || strcmp(all->events[all->count - 1]->event_type, "stop") != 0);
	sl_json_end(j);
}
