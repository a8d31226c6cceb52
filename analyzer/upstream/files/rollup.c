/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/files/files.h"

#include <math.h>

#include "analyzer/base/stats.h"
#include "analyzer/base/search.h"

/* The highest of each counter, and the event that had it first. */
struct peaks {
	const struct sl_v3_event *allocated, *reserved, *used;
};

static void observe_peaks(struct peaks *p, const struct sl_v3_event *event)
{
	if (!p->allocated || event->allocated_bytes > p->allocated->allocated_bytes)
		p->allocated = event;
	if (!p->reserved || event->reserved_bytes > p->reserved->reserved_bytes)
		p->reserved = event;
	if (!p->used || event->used_bytes > p->used->used_bytes)
		p->used = event;
}

static void write_peak(struct sl_json *j, const char *key, const struct sl_v3_event *event, int64_t value)
{
	sl_json_object(j, key);
	if (event) {
		sl_json_int(j, "value", value);
		sl_json_int(j, "timestamp_ns", event->timestamp_ns);
		sl_json_int(j, "rank", event->rank);
		sl_json_int(j, "device_id", event->device_id);
	} else {
		sl_json_null(j, "value");
		sl_json_null(j, "timestamp_ns");
		sl_json_null(j, "rank");
		sl_json_null(j, "device_id");
	}
	sl_json_end(j);
}

static void write_peaks(struct sl_json *j, const struct peaks *p)
{
	sl_json_object(j, "counters");
	write_peak(j, "allocator_allocated_bytes", p->allocated, p->allocated ? p->allocated->allocated_bytes : 0);
	write_peak(j, "allocator_reserved_bytes", p->reserved, p->reserved ? p->reserved->reserved_bytes : 0);
	write_peak(j, "device_used_bytes", p->used, p->used ? p->used->used_bytes : 0);
	sl_json_end(j);
}

static void write_times(struct sl_json *j, const struct sl_series *series)
{
	if (series->count) {
		sl_json_int(j, "first_timestamp_ns", series->events[0]->timestamp_ns);
		sl_json_int(j, "last_timestamp_ns", series->events[series->count - 1]->timestamp_ns);
	} else {
		sl_json_null(j, "first_timestamp_ns");
		sl_json_null(j, "last_timestamp_ns");
	}
}

/* --- alerts, collector health, OOMs ------------------------------------------------------------------------- */

static void write_alerts(struct sl_json *j, const struct sl_series *all)
{
	struct sl_map severities = {0}, types = {0};
	struct sl_arena arena = {0};
	int64_t total = 0;

	for (size_t i = 0; i < all->count; i++) {
		if (!sl_event_is_alert(all->events[i]))
			continue;
		total++;
		++*sl_map_at(&severities, sl_event_severity(&arena, all->events[i]));
		++*sl_map_at(&types, all->events[i]->event_type);
	}
	sl_json_object(j, "alerts");
	sl_json_int(j, "total_count", total);
	sl_event_write_counts(j, "severity_counts", &severities);
	sl_event_write_counts(j, "event_type_counts", &types);
	sl_json_end(j);
	sl_map_free(&severities);
	sl_map_free(&types);
	sl_arena_free(&arena);
}

static void write_health(struct sl_json *j, const struct sl_session_summary *summary, const struct sl_series *all)
{
	int64_t degraded = 0, recovered = 0, degraded_ns = 0, since_ns = 0, end_ns = 0;
	struct sl_arena arena = {0};
	const char *status = NULL;
	bool is_degraded = false;

	for (size_t i = 0; i < all->count; i++) {
		const struct sl_v3_event *event = all->events[i];

		end_ns = event->timestamp_ns;
		if (!sl_event_is_collector_transition(event)) {
			const char *own = sl_value_get_text(event->metadata, "collector_health_status");

			status = own && !sl_utf8_is_blank(own) ? own : status;
		} else if (strcmp(event->event_type, "collector_degraded") == 0) {
			degraded++;
			since_ns = event->timestamp_ns;
			is_degraded = true;
			status = "degraded";
		} else {
			recovered++;
			degraded_ns += is_degraded && event->timestamp_ns > since_ns ? event->timestamp_ns - since_ns : 0;
			is_degraded = false;
			status = "healthy";
		}
	}
	if (summary->has_end && summary->ended_at_ns)
		end_ns = summary->ended_at_ns;
	if (is_degraded && end_ns > since_ns)
		degraded_ns += end_ns - since_ns;
	sl_json_object(j, "collector_health");
	sl_json_int(j, "transition_count", degraded + recovered);
	sl_json_int(j, "degraded_count", degraded);
	sl_json_int(j, "recovered_count", recovered);
	sl_json_int(j, "degraded_time_ns", degraded_ns);
	sl_json_string(j, "last_status", status ? sl_utf8_lower(&arena, sl_utf8_strip(&arena, status)) : NULL);
	sl_json_end(j);
	sl_arena_free(&arena);
}

static void write_ooms(struct sl_json *j, const struct sl_series *all)
{
	struct sl_map bundles = {0};
	int64_t count = 0;

	for (size_t i = 0; i < all->count; i++) {
		if (!sl_event_is_oom(all->events[i]))
			continue;
		const char *path = sl_value_get_text(all->events[i]->metadata, "oom_dump_path");

		count++;
		if (path && !sl_utf8_is_blank(path))
			sl_map_intern(&bundles, path);
	}
	sl_json_object(j, "oom");
	sl_json_int(j, "marker_count", count);
	sl_json_int(j, "event_count", count);
	sl_json_int(j, "bundle_path_count", (int64_t)bundles.count);
	sl_json_end(j);
	sl_map_free(&bundles);
}

/* --- ranks and windows -------------------------------------------------------------------------------------- */

static void write_gaps(struct sl_json *j, const struct sl_series *all)
{
	const struct sl_v3_event *first = NULL, *last = NULL;
	int64_t peak = 0, samples = 0;

	for (size_t i = 0; i < all->count; i++) {
		if (!sl_event_is_sample(all->events[i]))
			continue;
		last = all->events[i];
		first = first ? first : last;
		if (samples++ == 0 || sl_event_hidden_gap(last) > peak)
			peak = sl_event_hidden_gap(last);
	}
	sl_json_int(j, "sample_count", samples);
	if (!first) {
		sl_json_null(j, "hidden_gap_first_bytes");
		sl_json_null(j, "hidden_gap_latest_bytes");
		sl_json_null(j, "hidden_gap_peak_bytes");
		sl_json_null(j, "hidden_gap_delta_bytes");
		sl_json_null(j, "hidden_gap_drift_bytes_per_second");
		return;
	}
	__int128 delta = (__int128)sl_event_hidden_gap(last) - sl_event_hidden_gap(first);
	int64_t time_ns = last->timestamp_ns - first->timestamp_ns;

	sl_json_int(j, "hidden_gap_first_bytes", sl_event_hidden_gap(first));
	sl_json_int(j, "hidden_gap_latest_bytes", sl_event_hidden_gap(last));
	sl_json_int(j, "hidden_gap_peak_bytes", peak);
	sl_json_int128(j, "hidden_gap_delta_bytes", delta);
	sl_json_double(j, "hidden_gap_drift_bytes_per_second",
		       time_ns > 0 ? sl_stats_round((double)delta / ((double)time_ns / 1e9), 6) : NAN);
}

static void write_rank(struct sl_json *j, const struct sl_rank_series *rank)
{
	struct peaks peaks = {0};

	for (size_t i = 0; i < rank->all.count; i++)
		observe_peaks(&peaks, rank->all.events[i]);
	sl_json_object(j, NULL);
	sl_json_int(j, "rank", rank->rank);
	sl_json_int(j, "local_rank", rank->all.events[0]->local_rank);
	sl_json_int(j, "world_size", rank->all.events[0]->world_size);
	sl_json_int(j, "event_count", (int64_t)rank->all.count);
	write_times(j, &rank->all);
	write_peaks(j, &peaks);
	write_gaps(j, &rank->all);
	sl_json_end(j);
}

struct window {
	__int128 index;
	int64_t events, samples, ranks, alerts, transitions, ooms;
	struct peaks peaks;
};

static void write_window(struct sl_json *j, const struct window *w, int64_t started_ns, int64_t window_ns)
{
	sl_json_object(j, NULL);
	sl_json_int128(j, "index", w->index);
	sl_json_int128(j, "start_ns", started_ns + w->index * window_ns);
	sl_json_int128(j, "end_ns", started_ns + (w->index + 1) * window_ns);
	sl_json_int(j, "event_count", w->events);
	sl_json_int(j, "sample_count", w->samples);
	sl_json_int(j, "rank_count", w->ranks);
	write_peaks(j, &w->peaks);
	sl_json_int(j, "alert_count", w->alerts);
	sl_json_int(j, "collector_transition_count", w->transitions);
	sl_json_int(j, "oom_count", w->ooms);
	sl_json_end(j);
}

static size_t place_of_rank(const struct sl_session_series *series, int32_t rank)
{
	return SL_FIRST(i, series->rank_count, series->ranks[i].rank >= rank);
}

/* Events are in order, so windows come one after the other; `seen` is the last window of each rank. */
static void write_windows(struct sl_json *j, const struct sl_session_series *series, int64_t started_ns, int64_t window_ns)
{
	struct sl_arena arena = {0};
	__int128 *seen = sl_arena_alloc(&arena, (series->rank_count + 1) * sizeof(*seen)); /* index + 1 */
	struct window w = {0};

	sl_json_array(j, "windows");
	for (size_t i = 0; i < series->all.count; i++) {
		const struct sl_v3_event *event = series->all.events[i];
		__int128 since_ns = (__int128)event->timestamp_ns - started_ns, index = since_ns > 0 ? since_ns / window_ns : 0;

		if (w.events && index != w.index)
			write_window(j, &w, started_ns, window_ns);
		if (!w.events || index != w.index)
			w = (struct window){.index = index};
		__int128 *rank = &seen[place_of_rank(series, event->rank)];

		w.events++;
		w.samples += sl_event_is_sample(event);
		w.ranks += *rank != index + 1;
		*rank = index + 1;
		w.alerts += sl_event_is_alert(event);
		w.transitions += sl_event_is_collector_transition(event);
		w.ooms += sl_event_is_oom(event);
		observe_peaks(&w.peaks, event);
	}
	if (w.events)
		write_window(j, &w, started_ns, window_ns);
	sl_json_end(j);
	sl_arena_free(&arena);
}

void sl_rollup_write(struct sl_json *j, const char *key, const struct sl_session *session, const struct sl_session_series *series,
		     int64_t window_ns)
{
	struct peaks peaks = {0};
	int64_t samples = 0;

	for (size_t i = 0; i < series->all.count; i++) {
		observe_peaks(&peaks, series->all.events[i]);
		samples += sl_event_is_sample(series->all.events[i]);
	}
	sl_json_object(j, key);
	sl_session_summary_write(j, "session", &session->summary);
	sl_json_int(j, "event_count", (int64_t)series->all.count);
	sl_json_int(j, "sample_count", samples);
	write_times(j, &series->all);
	sl_json_int(j, "source_count", (int64_t)session->source_count);
	sl_json_texts(j, "sources_loaded", session->sources, session->source_count);
	sl_json_texts(j, "warnings", session->warnings, session->warning_count);
	write_peaks(j, &peaks);
	write_alerts(j, &series->all);
	write_health(j, &session->summary, &series->all);
	write_ooms(j, &series->all);
	sl_json_array(j, "ranks");
	for (size_t i = 0; i < series->rank_count; i++)
		write_rank(j, &series->ranks[i]);
	sl_json_end(j);
	write_windows(j, series, session->summary.started_at_ns, window_ns);
	sl_json_end(j);
}
