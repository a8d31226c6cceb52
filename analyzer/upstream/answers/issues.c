/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include <time.h>

#include "analyzer/base/search.h"
#include "analyzer/base/stats.h"

/* --- bundles ------------------------------------------------------------------------------------------------ */

static struct sl_value raw_or_null(const struct sl_value *value)
{
	return value ? *value : (struct sl_value){.kind = SL_VALUE_NULL};
}

/* ISO 8601 as bundles write it, to Unix nanoseconds; SL_ISSUE_NO_TIME when it is something else. */
static int64_t parse_utc(const char *text)
{
	struct tm tm = {0};
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	double fraction = 0;

	if (!rest)
		return SL_ISSUE_NO_TIME;
	if (*rest == '.') {
		char *end;

		fraction = strtod(rest, &end);
		rest = end;
	}
	int sign = *rest == '+' ? 1 : -1, hours = 0, minutes = 0;

	if (strcmp(rest, "Z") != 0 && *rest && (strchr("+-", *rest) == NULL || sscanf(rest + 1, "%2d:%2d", &hours, &minutes) != 2))
		return SL_ISSUE_NO_TIME;
	int64_t seconds = (int64_t)timegm(&tm) - (hours || minutes ? sign * (hours * 3600 + minutes * 60) : 0);

	return (int64_t)(((double)seconds + fraction) * 1e9);
}

static int by_creation(const void *a, const void *b)
{
	const struct sl_oom_row *const *x = a, *const *y = b;

	return strcmp((*x)->created_at_utc ? (*x)->created_at_utc : "", (*y)->created_at_utc ? (*y)->created_at_utc : "")
		       ?: strcmp((*x)->path, (*y)->path);
}

static void add_bundles(struct sl_issue_list *all, const struct sl_telemetry *t)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_oom_row **rows = sl_arena_alloc(arena, (t->bundles.count + 1) * sizeof(*rows));

	for (size_t i = 0; i < t->bundles.count; i++)
		rows[i] = &t->bundles.item[i];
	qsort(rows, t->bundles.count, sizeof(*rows), by_creation);
	for (size_t i = 0; i < t->bundles.count; i++) {
		const struct sl_oom_row *row = rows[i];
		struct sl_value *dimensions = sl_value_object(arena, 2), *details = sl_value_object(arena, 4),
				*metadata = sl_value_object(arena, 3);
		struct sl_evidence evidence = {.session_id = row->session_id,
					       .source_path = row->path,
					       .source_kind = "oom_bundle",
					       .bundle_path = row->path,
					       .timestamp_ns = parse_utc(row->created_at_utc),
					       .rank = -1,
					       .metadata = metadata};

		sl_value_set(dimensions, "backend", sl_value_of_text(row->backend));
		sl_value_set(dimensions, "reason", sl_value_of_text(row->reason));
		sl_value_set(details, "backend", sl_value_of_text(row->backend));
		sl_value_set(details, "exception_module", sl_value_of_text(row->exception_module));
		sl_value_set(details, "exception_type", sl_value_of_text(row->exception_type));
		sl_value_set(details, "reason", sl_value_of_text(row->reason));
		sl_value_set(metadata, "created_at_utc", sl_value_of_text(row->created_at_utc));
		sl_value_set(metadata, "event_count",
			     row->event_count == SL_EVENT_UNKNOWN ? sl_value_of_text(NULL) : sl_value_of_int(row->event_count));
		sl_value_set(metadata, "session_status", sl_value_of_text(row->session_status));
		sl_issue_list_add(all, "oom", "OOM captured by flight recorder", "critical", dimensions, details, &evidence);
	}
}

/* --- events ------------------------------------------------------------------------------------------------- */

struct row {
	const struct sl_v3_event *event;
	const struct sl_session *session;
};

static struct sl_evidence evidence_of(const struct row *row, const struct sl_value *metadata)
{
	return (struct sl_evidence){
		.session_id = row->event->session_id,
		.source_path = row->session->source_count ? row->session->sources[0] : NULL,
		.source_kind = sl_session_kind_names[row->session->kind],
		.event_type = row->event->event_type,
		.timestamp_ns = row->event->timestamp_ns,
		.rank = row->event->rank,
		.metadata = metadata,
	};
}

static struct sl_value *context_metadata(struct sl_arena *arena, const struct row *row)
{
	struct sl_value *metadata = sl_value_object(arena, 2);

	sl_value_set(metadata, "context", sl_value_of_text(row->event->context));
	sl_value_set(metadata, "session_status", sl_value_of_text(sl_session_status_names[row->session->summary.status]));
	return metadata;
}

static void add_oom(struct sl_issue_list *all, const struct row *row)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_v3_event *event = row->event;
	struct sl_value backend = sl_value_of_text(sl_event_backend(arena, event));
	struct sl_value reason = raw_or_null(sl_value_get(event->metadata, "oom_reason"));
	struct sl_value *dimensions = sl_value_object(arena, 2), *details = sl_value_object(arena, 4);
	struct sl_evidence evidence = evidence_of(row, context_metadata(arena, row));
	const char *path = sl_value_get_text(event->metadata, "oom_dump_path");

	evidence.bundle_path = path && *path ? path : NULL;
	sl_value_set(dimensions, "backend", backend);
	sl_value_set(dimensions, "reason", reason);
	sl_value_set(details, "backend", backend);
	sl_value_set(details, "collector", sl_value_of_text(event->collector));
	sl_value_set(details, "device_id", sl_value_of_int(event->device_id));
	sl_value_set(details, "reason", reason);
	sl_issue_list_add(all, "oom", "OOM telemetry event", "critical", dimensions, details, &evidence);
}

static void add_degradation(struct sl_issue_list *all, const struct row *row)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_v3_event *event = row->event;
	const struct sl_value *partial = sl_value_get(event->metadata, "collector_partial_fields");
	const char *health = sl_event_dimension_of(arena, sl_value_get(event->metadata, "collector_health_status"), "degraded");
	struct sl_value *object = sl_value_object(arena, 5), *metadata = sl_value_object(arena, 3);
	struct sl_evidence evidence = evidence_of(row, metadata);

	sl_value_set(object, "backend", sl_value_of_text(sl_event_backend(arena, event)));
	sl_value_set(object, "collector", sl_value_of_text(event->collector));
	sl_value_set(object, "error_stem",
		     sl_value_of_text(sl_fingerprint_error_stem(arena, sl_value_get(event->metadata, "collector_last_error"))));
	sl_value_set(object, "health_status", sl_value_of_text(health));
	sl_value_set(object, "partial_fields",
		     sl_value_is(partial, SL_VALUE_ARRAY) ? *partial : (struct sl_value){.kind = SL_VALUE_ARRAY});
	sl_value_set(metadata, "collector_consecutive_failures",
		     raw_or_null(sl_value_get(event->metadata, "collector_consecutive_failures")));
	sl_value_set(metadata, "collector_next_retry_epoch_s",
		     raw_or_null(sl_value_get(event->metadata, "collector_next_retry_epoch_s")));
	sl_value_set(metadata, "session_status", sl_value_of_text(sl_session_status_names[row->session->summary.status]));
	sl_issue_list_add(all, "collector_degradation", "Collector degradation",
			  strcmp(health, "unhealthy") == 0 ? "critical" : "warning", object, object, &evidence);
}

static const char *spaces_for_underscores(struct sl_arena *arena, const char *text)
{
	char *copy = sl_arena_strdup(arena, text);

	for (char *at = copy; *at; at++)
		*at = *at == '_' ? ' ' : *at;
	return copy;
}

static void add_alert(struct sl_issue_list *all, const struct row *row)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_v3_event *event = row->event;
	const struct sl_value context = sl_value_of_text(event->context);
	const char *severity = sl_event_severity(arena, event), *category = sl_fingerprint_category(arena, &context);
	struct sl_value *dimensions = sl_value_object(arena, 5), *details = sl_value_object(arena, 4);
	struct sl_evidence evidence = evidence_of(row, context_metadata(arena, row));
	struct sl_value backend = sl_value_of_text(sl_event_backend(arena, event));

	sl_value_set(dimensions, "backend", backend);
	sl_value_set(dimensions, "category", sl_value_of_text(category));
	sl_value_set(dimensions, "collector", sl_value_of_text(event->collector));
	sl_value_set(dimensions, "event_type", sl_value_of_text(event->event_type));
	sl_value_set(dimensions, "severity", sl_value_of_text(severity));
	sl_value_set(details, "backend", backend);
	sl_value_set(details, "category", sl_value_of_text(category));
	sl_value_set(details, "collector", sl_value_of_text(event->collector));
	sl_value_set(details, "event_type", sl_value_of_text(event->event_type));
	sl_issue_list_add(all, "alert", sl_arena_printf(arena, "Alert: %s", spaces_for_underscores(arena, category)), severity,
			  dimensions, details, &evidence);
}

static int by_time_and_session(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return SL_RISING(x->event->timestamp_ns, y->event->timestamp_ns) ?: strcmp(x->event->session_id, y->event->session_id)
	       ?: SL_RISING(x->session, y->session) ?: SL_RISING(x->event, y->event); /* in the order of loading */
}

static bool has_issues(const struct sl_session *session)
{
	return session->kind != SL_SESSION_DIAGNOSE && session->kind != SL_SESSION_BUNDLE;
}

static bool is_notable(const struct sl_v3_event *event)
{
	return sl_event_is_oom(event) || sl_event_is_degradation(event) || sl_event_is_alert(event);
}

static void add_events(struct sl_issue_list *all, const struct sl_telemetry *t)
{
	SL_VECTOR(struct row) rows = {0};

	for (size_t s = 0; s < t->loaded.count; s++)
		for (size_t i = 0; has_issues(&t->loaded.item[s]) && i < t->loaded.item[s].count; i++)
			if (is_notable(&t->loaded.item[s].events[i]))
				*SL_PUSH(&rows) = (struct row){&t->loaded.item[s].events[i], &t->loaded.item[s]};
	if (rows.count)
		qsort(rows.item, rows.count, sizeof(*rows.item), by_time_and_session);
	for (size_t i = 0; i < rows.count; i++) {
		const struct row *row = &rows.item[i];

		if (sl_event_is_oom(row->event))
			add_oom(all, row);
		else if (sl_event_is_degradation(row->event))
			add_degradation(all, row);
		else
			add_alert(all, row);
	}
	free(rows.item);
}

/* --- hidden memory ------------------------------------------------------------------------------------------ */

/* A structure that only exists as written JSON, as a value. */
static struct sl_value written(struct sl_arena *arena, const struct sl_gap_finding *finding, bool phase)
{
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);
	struct sl_value_error error;
	size_t length;

	if (phase)
		sl_phases_write_attribution(j, NULL, &finding->phase);
	else
		sl_gap_write_evidence(j, NULL, finding);
	const char *text = sl_json_text(j, &length);
	const struct sl_value *value = sl_value_parse(arena, text, length, 1, &error);

	sl_json_close(j);
	return raw_or_null(value);
}

/* Upstream takes the first event of the finding's time, sample or not. */
static const struct sl_v3_event *first_at(const struct sl_session *session, int64_t time_ns)
{
	return &session->events[SL_FIRST(i, session->count, session->events[i].timestamp_ns >= time_ns)];
}

static void add_finding(struct sl_issue_list *all, const struct sl_session *session, const struct sl_gap_finding *finding)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_v3_event *event = first_at(session, finding->event->timestamp_ns);
	const char *classification = sl_gap_kind_names[finding->kind], *severity = finding->critical ? "critical" : "warning";
	struct sl_value phase = sl_value_of_text(sl_phases_summary(arena, &finding->phase));
	struct sl_value *dimensions = sl_value_object(arena, 5), *details = sl_value_object(arena, 5),
			*metadata = sl_value_object(arena, 3);
	struct row row = {event, session};
	struct sl_evidence evidence = evidence_of(&row, metadata);

	evidence.session_id = session->summary.session_id;
	sl_value_set(dimensions, "backend", sl_value_of_text(sl_event_backend(arena, event)));
	sl_value_set(dimensions, "classification", sl_value_of_text(classification));
	sl_value_set(dimensions, "collector", sl_value_of_text(event->collector));
	sl_value_set(dimensions, "phase", phase);
	sl_value_set(dimensions, "severity", sl_value_of_text(severity));
	sl_value_set(details, "classification", sl_value_of_text(classification));
	sl_value_set(details, "confidence", sl_value_of_double(finding->confidence));
	sl_value_set(details, "description", sl_value_of_text(sl_arena_strdup(arena, finding->description)));
	sl_value_set(details, "evidence", written(arena, finding, false));
	sl_value_set(details, "phase", phase);
	sl_value_set(metadata, "classification", sl_value_of_text(classification));
	sl_value_set(metadata, "confidence", sl_value_of_double(finding->confidence));
	sl_value_set(metadata, "phase_attribution", written(arena, finding, true));
	sl_issue_list_add(all, "hidden_memory_anomaly", sl_arena_printf(arena, "Hidden-memory anomaly: %s", classification),
			  severity, dimensions, details, &evidence);
}

static void add_hidden_memory(struct sl_issue_list *all, const struct sl_telemetry *t)
{
	for (size_t s = 0; s < t->loaded.count; s++) {
		const struct sl_session *session = &t->loaded.item[s];
		struct sl_session_series series;
		struct sl_gap_result gaps;
		struct sl_phases phases;

		if (!has_issues(session) || session->count < 3)
			continue;
		sl_series_init(&series, session);
		sl_phases_init(&phases, &series);
		sl_gap_analyze(&series.all, &phases, &sl_gap_defaults, &gaps);
		for (size_t i = 0; i < gaps.count; i++)
			add_finding(all, session, &gaps.findings[i]);
		sl_phases_free(&phases);
		sl_series_free(&series);
	}
}

void sl_issues_write(struct sl_json *j, const char *key, const struct sl_telemetry *t, const struct sl_value *states)
{
	struct sl_issue_list all = {0};

	add_bundles(&all, t);
	add_events(&all, t);
	add_hidden_memory(&all, t);
	sl_issue_list_write(j, key, &all, states);
	sl_issue_list_free(&all);
}
