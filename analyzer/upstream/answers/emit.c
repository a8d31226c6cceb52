/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include <math.h>

#include "analyzer/base/stats.h"
#include "analyzer/upstream/files/files.h"

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

static void write_event(struct sl_json *j, const char *key, const struct sl_v3_event *event)
{
	struct sl_derived_event d = derive(event);

	sl_json_object(j, key);
	sl_json_int(j, "allocator_gap_bytes", d.allocator_gap_bytes);
	sl_json_double(j, "utilization_ratio", d.has_utilization ? d.utilization : NAN);
	sl_json_double(j, "fragmentation_ratio", d.has_fragmentation ? d.fragmentation : NAN);
	sl_json_bool(j, "is_degraded_collector", d.degraded_collector);
	sl_json_end(j);
}

/* derived_session: peak utilization, mean fragmentation, whether it was interrupted (its last event is no stop). */
static void write_derived(struct sl_json *j, const char *key, const struct sl_series *all)
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

const struct sl_emit_options sl_emit_defaults = {
	.thresholds = {.gap_ratio = 0.05, .spike_zscore = 2.0, .drift_r2 = 0.6, .fragmentation = 0.3}};

static void write_ranks(struct sl_json *j, const struct sl_session_series *series)
{
	sl_json_array(j, "ranks");
	for (size_t i = 0; i < series->rank_count; i++)
		sl_json_int(j, NULL, series->ranks[i].rank);
	sl_json_end(j);
}

/* --- the list of sessions ----------------------------------------------------------------------------------- */

static void write_event_types(struct sl_json *j, const struct sl_session *session)
{
	struct sl_map counts = {0};

	for (size_t i = 0; i < session->count; i++)
		++*sl_map_at(&counts, session->events[i].event_type);
	sl_event_write_counts(j, "event_types", &counts);
	sl_map_free(&counts);
}

static void write_row(struct sl_json *j, const struct sl_session *session, const struct sl_session_series *series)
{
	sl_json_object(j, NULL);
	sl_session_summary_write(j, "summary", &session->summary);
	sl_json_int(j, "event_count", (int64_t)session->count);
	if (session->count) {
		sl_json_int(j, "first_timestamp_ns", session->events[0].timestamp_ns);
		sl_json_int(j, "last_timestamp_ns", session->events[session->count - 1].timestamp_ns);
	} else {
		sl_json_null(j, "first_timestamp_ns");
		sl_json_null(j, "last_timestamp_ns");
	}
	write_event_types(j, session);
	write_ranks(j, series);
	sl_json_texts(j, "sources_loaded", session->sources, session->source_count);
	sl_json_texts(j, "warnings", session->warnings, session->warning_count);
	sl_json_end(j);
}

/* --- one session's analyses --------------------------------------------------------------------------------- */

static void write_gaps_by_rank(struct sl_json *j, const struct sl_session_series *series, struct sl_phases *phases,
			       const struct sl_gap_thresholds *thresholds)
{
	char rank[16];

	sl_json_object(j, "gap_analysis_by_rank");
	for (size_t i = 0; i < series->rank_count; i++) {
		struct sl_gap_result gaps;

		snprintf(rank, sizeof(rank), "%d", series->ranks[i].rank);
		sl_gap_analyze(&series->ranks[i].samples, phases, thresholds, &gaps);
		sl_gap_write(j, rank, &gaps);
	}
	sl_json_end(j);
}

static void write_collectives(struct sl_json *j, const struct sl_session_series *series, struct sl_phases *phases)
{
	sl_json_object(j, "collective_attribution");
	for (int i = 0; i < SL_COLLECTIVE_PRESETS; i++) {
		struct sl_collective_result result;

		sl_collective_analyze(series, phases, &sl_collective_presets[i], &result);
		sl_collective_write(j, sl_collective_presets[i].name, &result);
		sl_collective_free(&result);
	}
	sl_json_end(j);
}

static void write_cross_rank(struct sl_json *j, const char *key, const struct sl_session_series *series, struct sl_phases *phases)
{
	struct sl_cross_rank result;

	sl_cross_rank_analyze(series, phases, &result);
	sl_cross_rank_write(j, key, &result);
	sl_cross_rank_free(&result);
}

static void write_session(struct sl_json *j, const struct sl_session *session, const struct sl_session_series *series,
			  const struct sl_gap_thresholds *thresholds)
{
	struct sl_phases phases;
	struct sl_gap_result gaps;
	struct sl_markers markers;
	int64_t samples = 0;

	for (size_t i = 0; i < session->count; i++)
		samples += sl_event_is_sample(&session->events[i]);
	sl_phases_init(&phases, series);
	sl_json_object(j, session->summary.session_id);
	sl_json_flat(j);
	sl_json_int(j, "event_count", (int64_t)session->count);
	sl_json_int(j, "sample_count", samples);
	write_ranks(j, series);
	write_derived(j, "derived_session", &series->all);
	if (session->count)
		write_event(j, "derived_first_event", &session->events[0]);
	else
		sl_json_null(j, "derived_first_event");
	sl_markers_derive(series, &phases, &markers);
	sl_markers_write(j, "timeline_markers", &markers);
	sl_markers_free(&markers);
	sl_phases_write(j, "phase_spans", &phases, series);
	sl_gap_analyze(&series->all, &phases, thresholds, &gaps);
	sl_gap_write(j, "gap_analysis", &gaps);
	write_gaps_by_rank(j, series, &phases, thresholds);
	write_collectives(j, series, &phases);
	write_cross_rank(j, "cross_rank_analysis", series, &phases);
	sl_rollup_write(j, "rollup", session, series, SL_ROLLUP_WINDOW_NS);
	sl_json_end(j);
	sl_phases_free(&phases);
}

int sl_emit_telemetry(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	options = options ? options : &sl_emit_defaults;
	sl_json_object(j, "telemetry");
	sl_json_string(j, "default_session_id", t->selected ? t->selected->summary.session_id : NULL);
	sl_json_string(j, "analyze_cli_session_id", t->sessions.count ? t->sessions.item[0].summary.session_id : NULL);
	sl_json_array(j, "sessions");
	for (size_t i = 0; i < t->sessions.count; i++) {
		struct sl_session_series series;

		sl_series_init(&series, &t->sessions.item[i]);
		write_row(j, &t->sessions.item[i], &series);
		sl_series_free(&series);
	}
	sl_json_end(j);
	sl_json_object(j, "per_session");
	for (size_t i = 0; i < t->sessions.count; i++) {
		struct sl_session_series series;

		sl_series_init(&series, &t->sessions.item[i]);
		write_session(j, &t->sessions.item[i], &series, &options->thresholds);
		sl_series_free(&series);
	}
	sl_json_end(j);
	sl_issues_write(j, "issues", t, options->issue_states);
	sl_json_end(j);
	return 0;
}

void sl_emit_selected(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	const struct sl_session nothing = {0}, *session = t->selected ? t->selected : &nothing;
	struct sl_session_series series;
	struct sl_phases phases;
	struct sl_gap_result gaps;
	struct sl_collective_result collectives;

	options = options ? options : &sl_emit_defaults;
	sl_series_init(&series, session);
	sl_phases_init(&phases, &series);
	sl_gap_analyze(&series.all, &phases, &options->thresholds, &gaps);
	sl_gap_write(j, "gap_findings", &gaps);
	sl_collective_analyze(&series, &phases, &sl_collective_presets[SL_COLLECTIVE_MEDIUM], &collectives);
	sl_collective_write(j, "collective_attribution", &collectives);
	sl_collective_free(&collectives);
	if (t->selected)
		write_cross_rank(j, "cross_rank", &series, &phases);
	else
		sl_json_null(j, "cross_rank");
	sl_phases_free(&phases);
	sl_series_free(&series);
}

void sl_emit_each_warning(const struct sl_telemetry *t, void (*warning)(void *context, const char *text), void *context)
{
	struct sl_arena arena = {0};

	for (size_t i = 0; i < t->problems.count; i++) {
		const struct sl_problem *p = &t->problems.item[i];

		warning(context, p->line ? sl_arena_printf(&arena, "%s:%u: %s", p->file, p->line, p->reason)
					 : sl_arena_printf(&arena, "%s: %s", p->file, p->reason));
	}
	for (size_t i = 0; i < t->sessions.count; i++) {
		struct sl_session_series series;
		struct sl_phases phases;
		struct sl_gap_result gaps;

		sl_series_init(&series, &t->sessions.item[i]);
		sl_phases_init(&phases, &series);
		sl_gap_analyze(&series.all, &phases, &sl_gap_defaults, &gaps);
		if (gaps.no_times)
			warning(context, sl_arena_printf(&arena, "session %s: all samples have one time, so it has no drift",
							 t->sessions.item[i].summary.session_id));
		sl_phases_free(&phases);
		sl_series_free(&series);
	}
	sl_arena_free(&arena);
}
