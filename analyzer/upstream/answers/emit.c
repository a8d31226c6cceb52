/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include <math.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/upstream/files/files.h"

static const struct {
	const char *event_type, *kind, *severity, *label;
} points[] = {
	{"start", "lifecycle", "info", "Tracking started"},
	{"stop", "lifecycle", "info", "Tracking stopped"},
	{"collector_degraded", "collector", "warning", "Collector degraded"},
	{"collector_recovered", "collector", "info", "Collector recovered"},
	{"warning", "alert", "warning", "Warning"},
	{"critical", "alert", "critical", "Critical alert"},
	{"error", "alert", "critical", "Error"},
};
enum { POINTS = sizeof(points) / sizeof(*points) };

/* The row of `points` for an event type, which counts with white space around it; -1 for none. */
static int point_of(const char *event_type)
{
	for (int i = 0; i < POINTS; i++) {
		const char *hit = strstr(event_type, points[i].event_type);

		if (!hit)
			continue;
		if (hit == event_type && event_type[strlen(points[i].event_type)] == 0)
			return i;
		struct sl_arena arena = {0};
		bool same = strcmp(sl_utf8_strip(&arena, event_type), points[i].event_type) == 0;

		sl_arena_free(&arena);
		if (same)
			return i;
	}
	return -1;
}

static bool point_marker(struct sl_markers *markers, const struct sl_v3_event *event, struct sl_marker *marker)
{
	int i = point_of(event->event_type);

	if (i < 0)
		return false;
	*marker = (struct sl_marker){
		.session_id = event->session_id,
		.kind = points[i].kind,
		.severity = points[i].severity,
		.label = points[i].label,
		.start_ns = event->timestamp_ns,
		.rank = event->rank,
		.local_rank = event->local_rank,
		.world_size = event->world_size,
		.event_type = points[i].event_type,
		.metadata = event->metadata,
	};
	const char *reason = sl_value_get_text(event->metadata, "oom_reason");

	if (strcmp(points[i].event_type, "error") == 0 &&
	    (sl_value_get(event->metadata, "oom_reason") || sl_value_get(event->metadata, "oom_dump_path"))) {
		marker->kind = "oom";
		marker->label = reason && !sl_utf8_is_blank(reason) ? sl_arena_printf(&markers->arena, "OOM detected: %s",
										      sl_utf8_strip(&markers->arena, reason))
								    : "OOM detected";
	}
	if (event->context && !sl_utf8_is_blank(event->context))
		marker->label = sl_utf8_strip(&markers->arena, event->context);
	return true;
}

static void phase_marker(struct sl_markers *markers, const struct sl_phase_span *span, size_t number,
			 const struct sl_v3_event *first, struct sl_marker *marker)
{
	*marker = (struct sl_marker){
		.session_id = span->session_id,
		.kind = "phase",
		.severity = "info",
		.label = sl_arena_printf(&markers->arena, "Phase: %s", span->label),
		.start_ns = span->start_ns,
		.end_ns = span->end_ns,
		.has_end = true,
		.rank = span->rank,
		.local_rank = first->local_rank,
		.world_size = first->world_size,
		.event_type = "phase",
		.phase = span,
		.span = number,
	};
}

static int by_place(const void *a, const void *b)
{
	const struct sl_marker *x = a, *y = b;
	int64_t end_x = x->has_end ? x->end_ns : x->start_ns, end_y = y->has_end ? y->end_ns : y->start_ns;

	return SL_RISING(x->start_ns, y->start_ns) ?: SL_RISING(end_x, end_y) ?: SL_RISING(x->rank, y->rank)
	       ?: strcmp(x->kind, y->kind) ?: strcmp(x->label, y->label);
}

/* qsort is not stable: equal markers keep their order through an array of pointers. */
static int by_place_of_pointer(const void *a, const void *b)
{
	const struct sl_marker *const *x = a, *const *y = b;

	return by_place(*x, *y) ?: SL_RISING(*x, *y);
}

void sl_markers_derive(const struct sl_session_series *series, const struct sl_phases *phases, struct sl_markers *markers)
{
	SL_VECTOR(struct sl_marker) list = {0};

	memset(markers, 0, sizeof(*markers));
	for (size_t i = 0; i < series->all.count; i++)
		if (!point_marker(markers, series->all.events[i], SL_PUSH(&list)))
			list.count--;
	for (size_t r = 0, number = 0; r < phases->rank_count; r++)
		for (size_t i = 0; i < phases->ranks[r].count; i++)
			phase_marker(markers, &phases->ranks[r].spans[i], number++, series->ranks[r].all.events[0], SL_PUSH(&list));
	const struct sl_marker **sorted = sl_arena_alloc(&markers->arena, (list.count + 1) * sizeof(*sorted));

	for (size_t i = 0; i < list.count; i++)
		sorted[i] = &list.item[i];
	qsort(sorted, list.count, sizeof(*sorted), by_place_of_pointer);
	markers->list = sl_arena_alloc(&markers->arena, (list.count + 1) * sizeof(*list.item));
	markers->count = list.count;
	for (size_t i = 0; i < list.count; i++)
		markers->list[i] = *sorted[i];
	free(list.item);
}

void sl_markers_free(struct sl_markers *markers)
{
	sl_arena_free(&markers->arena);
}

static void write_phase(struct sl_json *j, const struct sl_phase_span *span)
{
	sl_json_object(j, "metadata");
	sl_json_texts(j, "phase_path", span->path, span->depth);
	sl_json_string(j, "scope_id", span->scope_id);
	sl_json_int(j, "thread_id", span->thread_id);
	sl_json_string(j, "thread_name", span->thread_name);
	sl_json_int(j, "sequence", span->sequence);
	sl_json_bool(j, "synthetic_end", span->synthetic_end);
	sl_json_end(j);
}

/* The label is the whole path, so that the span has all that the marker says. */
static bool is_span(const struct sl_marker *marker)
{
	size_t size = 0;

	for (uint32_t i = 0; marker->phase && i < marker->phase->depth; i++)
		size += strlen(marker->phase->path[i]) + (i ? strlen(" / ") : 0);
	return marker->phase && strlen(marker->phase->label) == size;
}

static void write_marker(struct sl_json *j, const struct sl_marker *marker)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", marker->session_id);
	sl_json_int(j, "start_ns", marker->start_ns);
	if (marker->has_end)
		sl_json_int(j, "end_ns", marker->end_ns);
	else
		sl_json_null(j, "end_ns");
	sl_json_string(j, "kind", marker->kind);
	sl_json_string(j, "source", marker->phase ? "phase_replay" : "telemetry_event");
	sl_json_string(j, "severity", marker->severity);
	sl_json_string(j, "label", marker->label);
	sl_json_int(j, "rank", marker->rank);
	sl_json_int(j, "local_rank", marker->local_rank);
	sl_json_int(j, "world_size", marker->world_size);
	sl_json_string(j, "event_type", marker->event_type);
	if (marker->phase) {
		write_phase(j, marker->phase);
	} else if (marker->metadata) {
		sl_json_value(j, "metadata", marker->metadata);
	} else {
		sl_json_object(j, "metadata");
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* Writes an array: an object for each marker, and for a phase with its whole label its row number in phases_write. */
static void markers_write(struct sl_json *j, const char *key, const struct sl_markers *markers)
{
	sl_json_row(j, key);
	for (size_t i = 0; i < markers->count; i++)
		if (is_span(&markers->list[i]))
			sl_json_uint(j, NULL, markers->list[i].span);
		else
			write_marker(j, &markers->list[i]);
	sl_json_end(j);
}

/* Fields computed from the counters of one event, and of a session as a whole. */
struct derived_event {
	int64_t allocator_gap_bytes; /* reserved but not allocated, never below 0 */
	bool has_utilization, has_fragmentation, degraded_collector;
	double utilization;   /* allocated / device total */
	double fragmentation; /* gap / reserved */
};

static struct derived_event derive(const struct sl_v3_event *event)
{
	static const char *const words[] = {"fallback", "degraded", "unavailable", "partial", "legacy.unknown"};
	struct derived_event d = {0};

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
	struct derived_event d = derive(event);

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
		struct derived_event d = derive(all->events[i]);

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

static void write_row(struct sl_json *j, const struct sl_session *session)
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
	write_ranks(j, &session->answers->series);
	sl_json_texts(j, "sources_loaded", session->sources, session->source_count);
	sl_json_texts(j, "warnings", session->warnings, session->warning_count);
	sl_json_end(j);
}

/* --- one session's analyses --------------------------------------------------------------------------------- */

/* The array of findings in upstream's layout. */
static void gap_write(struct sl_json *j, const char *key, const struct sl_gap_result *result)
{
	sl_json_array(j, key);
	for (size_t i = 0; i < result->count; i++) {
		const struct sl_gap_finding *finding = &result->findings[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "classification", sl_gap_kind_names[finding->kind]);
		sl_json_string(j, "severity", finding->critical ? "critical" : "warning");
		sl_json_double(j, "confidence", finding->confidence);
		sl_gap_write_evidence(j, "evidence", finding);
		sl_json_string(j, "description", finding->description);
		sl_json_array(j, "remediation");
		sl_json_string(j, NULL, sl_gap_advice[finding->kind]);
		sl_json_end(j);
		sl_json_int(j, "evidence_timestamp_ns", finding->event->timestamp_ns);
		sl_phases_write_attribution(j, "phase_attribution", &finding->phase);
		sl_json_end(j);
	}
	sl_json_end(j);
}

static void write_gaps_by_rank(struct sl_json *j, const struct sl_session_series *series, struct sl_phases *phases,
			       const struct sl_gap_thresholds *thresholds)
{
	char rank[16];

	sl_json_object(j, "gap_analysis_by_rank");
	for (size_t i = 0; i < series->rank_count; i++) {
		struct sl_gap_result gaps;

		snprintf(rank, sizeof(rank), "%d", series->ranks[i].rank);
		sl_gap_analyze(&series->ranks[i].samples, phases, thresholds, &gaps);
		gap_write(j, rank, &gaps);
	}
	sl_json_end(j);
}

static void write_collectives(struct sl_json *j, const struct sl_session_answers *answers)
{
	sl_json_object(j, "collective_attribution");
	for (int i = 0; i < SL_COLLECTIVE_PRESETS; i++)
		sl_collective_write(j, sl_collective_presets[i].name, &answers->collectives[i]);
	sl_json_end(j);
}

static const char *rank_key(int32_t rank, char out[16])
{
	snprintf(out, 16, "%d", rank);
	return out;
}

static void write_suspect(struct sl_json *j, const struct sl_cross_suspect *suspect, size_t suspects)
{
	sl_json_object(j, NULL);
	sl_json_int(j, "rank", suspect->rank);
	sl_json_int(j, "first_spike_timestamp_ns", suspect->spike_ns);
	sl_json_int(j, "aligned_first_spike_timestamp_ns", suspect->aligned_ns);
	sl_json_int(j, "peak_delta_bytes", suspect->delta_bytes);
	sl_json_int(j, "spike_window_samples", suspect->window_samples);
	sl_json_int(j, "lead_over_cluster_onset_ns", suspect->lead_ns);
	sl_json_string(j, "confidence", suspect->confidence);
	sl_json_object(j, "evidence");
	sl_json_int(j, "device_used_delta_bytes", suspect->delta_bytes);
	sl_json_int(j, "supporting_ranks_at_or_before_onset", (int64_t)suspects);
	sl_json_end(j);
	sl_phases_write_attribution(j, "phase_attribution", &suspect->phase);
	sl_json_end(j);
}

static void write_cross_rank(struct sl_json *j, const char *key, const struct sl_cross_rank *result)
{
	char rank[16];

	sl_json_object(j, key);
	sl_json_string(j, "job_id", result->job_id);
	sl_json_int(j, "world_size", result->world_size);
	sl_json_array(j, "participating_ranks");
	for (size_t i = 0; i < result->rank_count; i++)
		sl_json_int(j, NULL, result->ranks[i].rank);
	sl_json_end(j);
	sl_json_array(j, "missing_ranks");
	for (size_t i = 0; i < result->missing_count; i++)
		sl_json_int(j, NULL, result->missing[i]);
	sl_json_end(j);
	sl_json_object(j, "rank_sample_counts");
	for (size_t i = 0; i < result->rank_count; i++)
		sl_json_int(j, rank_key(result->ranks[i].rank, rank), (int64_t)result->ranks[i].samples);
	sl_json_end(j);
	sl_json_object(j, "alignment_offsets_ns");
	for (size_t i = 0; i < result->rank_count; i++)
		sl_json_int(j, rank_key(result->ranks[i].rank, rank), result->ranks[i].offset_ns);
	sl_json_end(j);
	if (result->has_onset)
		sl_json_int(j, "cluster_onset_timestamp_ns", result->onset_ns);
	else
		sl_json_null(j, "cluster_onset_timestamp_ns");
	sl_json_array(j, "first_cause_suspects");
	for (size_t i = 0; i < result->suspect_count; i++)
		write_suspect(j, &result->suspects[i], result->suspect_count);
	sl_json_end(j);
	sl_json_texts(j, "notes", result->notes, result->note_count);
	sl_json_end(j);
}

static void write_thread(struct sl_json *j, const struct sl_phase_span *span, const struct sl_v3_event *first)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", span->session_id);
	sl_json_int(j, "rank", span->rank);
	sl_json_int(j, "local_rank", first->local_rank);
	sl_json_int(j, "world_size", first->world_size);
	sl_json_int(j, "thread_id", span->thread_id);
	sl_json_string(j, "thread_name", span->thread_name);
	sl_json_end(j);
}

static void write_span(struct sl_json *j, const struct sl_phase_span *span, uintptr_t thread, uintptr_t path)
{
	sl_json_row(j, NULL);
	sl_json_uint(j, NULL, thread - 1);
	sl_json_uint(j, NULL, path - 1);
	sl_json_string(j, NULL, span->scope_id);
	sl_json_int(j, NULL, span->start_ns);
	sl_json_int(j, NULL, span->end_ns);
	sl_json_int(j, NULL, span->sequence);
	sl_json_bool(j, NULL, span->synthetic_end);
	sl_json_end(j);
}

/* The number + 1 of a span's thread or path; 0: it has none yet. */
static uintptr_t *number_of(struct sl_map *numbers, const struct sl_phase_span *span, bool path)
{
	char *key = NULL;
	uintptr_t *number;
	size_t size;
	FILE *out = sl_memory_must(open_memstream(&key, &size));

	if (!path)
		fprintf(out, "%s %d %lld %s", span->session_id, span->rank, (long long)span->thread_id, span->thread_name);
	for (uint32_t i = 0; path && i < span->depth; i++)
		fprintf(out, "%s\1", span->path[i]);
	fclose(out);
	number = sl_map_at(numbers, sl_memory_must(key));
	free(key);
	return number;
}

/* Writes each thread or path that spans have, once, and returns the number + 1 of each span's, which the caller frees. */
static uintptr_t *write_table(struct sl_json *j, const struct sl_phases *phases, const struct sl_session_series *series, bool path)
{
	SL_VECTOR(uintptr_t) of = {0};
	struct sl_map numbers = {0};
	uintptr_t count = 0;

	path ? sl_json_row(j, "paths") : sl_json_array(j, "threads");
	for (size_t r = 0; r < phases->rank_count; r++)
		for (size_t i = 0; i < phases->ranks[r].count; i++) {
			const struct sl_phase_span *span = &phases->ranks[r].spans[i];
			uintptr_t *number = number_of(&numbers, span, path);

			if (!*number) {
				*number = ++count;
				if (path)
					sl_json_texts(j, NULL, span->path, span->depth);
				else
					write_thread(j, span, series->ranks[r].all.events[0]);
			}
			*SL_PUSH(&of) = *number;
		}
	sl_json_end(j);
	sl_map_free(&numbers);
	return of.item;
}

/* phase_spans of the report: a row for each span by rank, start, end and sequence, and the threads and paths they point to. */
static void phases_write(struct sl_json *j, const char *key, const struct sl_phases *phases, const struct sl_session_series *series)
{
	static const char *const columns[] = {"thread", "path", "scope_id", "start_ns", "end_ns", "sequence", "synthetic_end"};
	uintptr_t *threads, *paths;
	size_t row = 0;

	sl_json_object(j, key);
	threads = write_table(j, phases, series, false);
	paths = write_table(j, phases, series, true);
	sl_json_texts(j, "columns", columns, SL_COUNT(columns));
	sl_json_row(j, "rows");
	for (size_t r = 0; r < phases->rank_count; r++)
		for (size_t i = 0; i < phases->ranks[r].count; i++, row++)
			write_span(j, &phases->ranks[r].spans[i], threads[row], paths[row]);
	sl_json_end(j);
	sl_json_end(j);
	free(threads);
	free(paths);
}

static void write_session(struct sl_json *j, const struct sl_session *session, const struct sl_gap_thresholds *thresholds)
{
	struct sl_session_answers *answers = session->answers;
	const struct sl_session_series *series = &answers->series;
	struct sl_markers markers;
	int64_t samples = 0;

	for (size_t i = 0; i < session->count; i++)
		samples += sl_event_is_sample(&session->events[i]);
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
	sl_markers_derive(series, &answers->phases, &markers);
	markers_write(j, "timeline_markers", &markers);
	sl_markers_free(&markers);
	phases_write(j, "phase_spans", &answers->phases, series);
	gap_write(j, "gap_analysis", &answers->gaps);
	write_gaps_by_rank(j, series, &answers->phases, thresholds);
	write_collectives(j, answers);
	write_cross_rank(j, "cross_rank_analysis", &answers->cross_rank);
	sl_rollup_write(j, "rollup", session, series, SL_ROLLUP_WINDOW_NS);
	sl_json_end(j);
}

int sl_emit_telemetry(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	options = options ? options : &sl_emit_defaults;
	sl_json_object(j, "telemetry");
	sl_json_string(j, "default_session_id", t->selected ? t->selected->summary.session_id : NULL);
	sl_json_string(j, "analyze_cli_session_id", t->sessions.count ? t->sessions.item[0].summary.session_id : NULL);
	sl_json_array(j, "sessions");
	for (size_t i = 0; i < t->sessions.count; i++)
		write_row(j, &t->sessions.item[i]);
	sl_json_end(j);
	sl_json_object(j, "per_session");
	for (size_t i = 0; i < t->sessions.count; i++)
		write_session(j, &t->sessions.item[i], &options->thresholds);
	sl_json_end(j);
	sl_issues_write(j, "issues", t, options->issue_states);
	sl_json_end(j);
	return 0;
}

void sl_emit_selected(struct sl_json *j, const struct sl_telemetry *t)
{
	static const struct sl_session_answers none;
	const struct sl_session_answers *answers = t->selected ? t->selected->answers : &none;

	gap_write(j, "gap_findings", &answers->gaps);
	sl_collective_write(j, "collective_attribution", &answers->collectives[SL_COLLECTIVE_MEDIUM]);
	if (t->selected)
		write_cross_rank(j, "cross_rank", &answers->cross_rank);
	else
		sl_json_null(j, "cross_rank");
}

void sl_emit_each_warning(const struct sl_telemetry *t, void (*warning)(void *context, const char *text), void *context)
{
	struct sl_arena arena = {0};

	for (size_t i = 0; i < t->problems.count; i++) {
		const struct sl_problem *p = &t->problems.item[i];

		warning(context, p->line ? sl_arena_printf(&arena, "%s:%u: %s", p->file, p->line, p->reason)
					 : sl_arena_printf(&arena, "%s: %s", p->file, p->reason));
	}
	for (size_t i = 0; i < t->sessions.count; i++)
		if (t->sessions.item[i].answers->gaps.no_times)
			warning(context, sl_arena_printf(&arena, "session %s: all samples have one time, so it has no drift",
							 t->sessions.item[i].summary.session_id));
	sl_arena_free(&arena);
}
