/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include <time.h>
#include <string.h>

#include "analyzer/base/hash.h"
#include "analyzer/base/search.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/utf8.h"
#include "analyzer/base/value.h"
#include "analyzer/upstream/records/records.h"

struct item {
	struct sl_value value;
	const char *text;
};

static int by_item_text(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->text, ((const struct item *)b)->text);
}

static const char *to_json(struct sl_arena *arena, const struct sl_value *value, enum sl_json_style style)
{
	struct sl_json *j = sl_json_new(NULL, style);

	sl_json_value(j, NULL, value);
	const char *text = sl_arena_strdup(arena, sl_json_text(j, NULL));

	sl_json_close(j);
	return text;
}

static struct sl_value normalize_list(struct sl_arena *arena, const struct sl_value *value)
{
	struct item *items = sl_arena_alloc(arena, (value->count + 1) * sizeof(*items));
	struct sl_value *sorted = sl_arena_alloc(arena, (value->count + 1) * sizeof(*sorted)), result = *value;

	for (uint32_t i = 0; i < value->count; i++) {
		items[i].value = sl_issues_fingerprint_normalize(arena, &value->items[i]);
		items[i].text = to_json(arena, &items[i].value, SL_JSON_PYTHON);
	}
	qsort(items, value->count, sizeof(*items), by_item_text);
	for (uint32_t i = 0; i < value->count; i++)
		sorted[i] = items[i].value;
	result.items = sorted;
	return result;
}

struct sl_value sl_issues_fingerprint_normalize(struct sl_arena *arena, const struct sl_value *value)
{
	switch (value->kind) {
	case SL_VALUE_STRING:
		return sl_value_of_text(sl_event_dimension(arena, value->text, "unknown"));
	case SL_VALUE_DOUBLE:
		return sl_value_of_double(sl_stats_round(value->real, 6));
	case SL_VALUE_ARRAY:
		return normalize_list(arena, value);
	case SL_VALUE_OBJECT: {
		struct sl_value *object = sl_value_object(arena, value->count);

		for (uint32_t i = 0; i < value->count; i++)
			sl_value_set(object, value->members[i].key,
				     sl_issues_fingerprint_normalize(arena, &value->members[i].value));
		return *object;
	}
	default:
		return *value;
	}
}

void sl_issues_fingerprint_of(const char *kind, const struct sl_value *dimensions, char *out)
{
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);
	size_t length;

	sl_json_object(j, NULL);
	sl_json_value(j, "dimensions", dimensions);
	sl_json_string(j, "kind", kind);
	sl_json_int(j, "schema_version", 1);
	sl_json_end(j);
	const char *text = sl_json_text(j, &length);

	strcpy(out, "issue:");
	sl_hash_sha256_hex(text, length, 24, out + strlen(out));
	sl_json_close(j);
}

const char *sl_issues_fingerprint_category(struct sl_arena *arena, const struct sl_value *context)
{
	const char *text = sl_event_dimension_of(arena, context, "unknown");

	if (strstr(text, "fragmentation"))
		return "high_fragmentation";
	if (strstr(text, "oom") || strstr(text, "out of memory"))
		return "oom_alert";
	return strcmp(text, "unknown") == 0 ? "generic_alert" : text;
}

/* The first n characters. */
static const char *truncate_text(struct sl_arena *arena, const char *text, size_t n)
{
	const char *at = text;

	while (*at && n--)
		sl_utf8_next(&at);
	return *at ? sl_arena_strndup(arena, text, (size_t)(at - text)) : text;
}

const char *sl_issues_fingerprint_error_stem(struct sl_arena *arena, const struct sl_value *error)
{
	const char *text = sl_event_dimension_of(arena, error, "unknown"), *colon = strchr(text, ':');

	if (colon)
		text = sl_utf8_strip(arena, sl_arena_strndup(arena, text, (size_t)(colon - text)));
	text = truncate_text(arena, text, 120);
	return *text ? text : "unknown";
}

static int severity_rank(const char *severity)
{
	static const char *const words[] = {"critical", "error", "warning", "info"};
	static const int ranks[] = {0, 0, 1, 2};

	for (int i = 0; i < 4; i++)
		if (strcmp(severity, words[i]) == 0)
			return ranks[i];
	return 9;
}

/* Collects issues, where problems with the same fingerprint are one issue, and writes the array of them. */
#define ISSUE_NO_TIME INT64_MIN

struct sl_evidence {
	struct sl_evidence *next;
	const char *session_id, *source_path, *source_kind, *event_type, *bundle_path;
	int64_t timestamp_ns; /* ISSUE_NO_TIME */
	int64_t rank;	      /* -1: unknown */
	const struct sl_value *metadata;
};

struct sl_issue {
	char id[31];
	const char *kind, *title, *severity;
	const struct sl_value *dimensions, *details;
	struct sl_evidence *first, *last;
	int64_t hits, first_ns, last_ns;
};

struct issue_list {
	struct sl_arena arena;
	struct sl_map places; /* id -> place + 1 */
	struct sl_issue *list;
	size_t count, capacity;
};

static struct sl_issue *find_or_add(struct issue_list *all, const char *kind, const struct sl_value *dimensions)
{
	struct sl_value *normal = sl_arena_alloc(&all->arena, sizeof(*normal));
	char id[31];

	*normal = sl_issues_fingerprint_normalize(&all->arena, dimensions);
	sl_issues_fingerprint_of(kind, normal, id);
	uintptr_t *place = sl_map_at(&all->places, id);

	if (!*place) {
		all->list = sl_arena_grow(all->list, &all->capacity, all->count, sizeof(*all->list));
		struct sl_issue *issue = &all->list[all->count++];

		*issue = (struct sl_issue){.kind = kind, .dimensions = normal, .first_ns = ISSUE_NO_TIME, .last_ns = ISSUE_NO_TIME};
		strcpy(issue->id, id);
		*place = all->count;
	}
	return &all->list[*place - 1];
}

/*
 * Adds a problem.  The issue keeps the first title, the worst severity and the last details.  All texts live in the list's
 * arena, or outlive it.
 */
static void issue_list_add(struct issue_list *all, const char *kind, const char *title, const char *severity,
			   const struct sl_value *dimensions, const struct sl_value *details, const struct sl_evidence *evidence)
{
	struct sl_issue *issue = find_or_add(all, kind, dimensions);
	struct sl_evidence *hit = sl_arena_alloc(&all->arena, sizeof(*hit));
	int64_t at_ns = evidence->timestamp_ns;

	*hit = *evidence;
	if (!issue->title) {
		issue->title = title;
		issue->severity = severity;
	}
	if (issue->last)
		issue->last->next = hit;
	else
		issue->first = hit;
	issue->last = hit;
	issue->hits++;
	issue->details = details; /* every hit has the same keys; the values of the last one stay */
	if (severity_rank(severity) < severity_rank(issue->severity))
		issue->severity = severity;
	if (at_ns == ISSUE_NO_TIME)
		return;
	if (issue->first_ns == ISSUE_NO_TIME || at_ns < issue->first_ns)
		issue->first_ns = at_ns;
	if (at_ns > issue->last_ns)
		issue->last_ns = at_ns;
}

static int by_importance(const void *a, const void *b)
{
	const struct sl_issue *x = a, *y = b;

	return severity_rank(x->severity) - severity_rank(y->severity) ?: SL_FALLING(x->last_ns, y->last_ns)
	       ?: strcmp(x->id, y->id);
}

static void write_time(struct sl_json *j, const char *key, int64_t time_ns)
{
	if (time_ns == ISSUE_NO_TIME)
		sl_json_null(j, key);
	else
		sl_json_int(j, key, time_ns);
}

static void write_evidence(struct sl_json *j, const char *key, const struct sl_evidence *evidence)
{
	sl_json_object(j, key);
	sl_json_string(j, "session_id", evidence->session_id);
	write_time(j, "timestamp_ns", evidence->timestamp_ns);
	sl_json_known(j, "rank", evidence->rank);
	sl_json_string(j, "source_path", evidence->source_path);
	sl_json_string(j, "source_kind", evidence->source_kind);
	sl_json_string(j, "event_type", evidence->event_type);
	sl_json_string(j, "bundle_path", evidence->bundle_path);
	sl_json_value(j, "metadata", evidence->metadata);
	sl_json_end(j);
}

static void write_sessions(struct sl_json *j, const struct sl_issue *issue)
{
	struct sl_map seen = {0};

	for (const struct sl_evidence *e = issue->first; e; e = e->next)
		sl_map_intern(&seen, e->session_id);
	const char **ids = sl_map_sorted(&seen);

	sl_json_texts(j, "affected_sessions", ids, seen.count);
	free(ids);
	sl_map_free(&seen);
}

/* NULL: it is none of them. */
static const char *word_of(const struct sl_value *state)
{
	static const char *const words[] = {"open", "resolved", "ignored", "regressed"};

	for (size_t i = 0; sl_value_is(state, SL_VALUE_STRING) && i < sizeof(words) / sizeof(*words); i++)
		if (sl_utf8_matches(state->text, words[i]))
			return words[i];
	return NULL;
}

const struct sl_value *sl_issue_list_wrong_state(const struct sl_value *states)
{
	if (!sl_value_is(states, SL_VALUE_OBJECT))
		return states;
	for (uint32_t i = 0; i < states->count; i++)
		if (!word_of(&states->members[i].value))
			return &states->members[i].value;
	return NULL;
}

static const char *state_of(const struct sl_issue *issue, const struct sl_value *states)
{
	return word_of(sl_value_get(states, issue->id)) ?: "open";
}

static void write_issue(struct sl_json *j, const struct sl_issue *issue, const struct sl_value *states)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "fingerprint_id", issue->id);
	sl_json_object(j, "fingerprint");
	sl_json_int(j, "schema_version", 1);
	sl_json_string(j, "fingerprint_id", issue->id);
	sl_json_string(j, "kind", issue->kind);
	sl_json_value(j, "dimensions", issue->dimensions);
	sl_json_end(j);
	sl_json_string(j, "kind", issue->kind);
	sl_json_string(j, "state", state_of(issue, states));
	sl_json_string(j, "severity", issue->severity);
	sl_json_string(j, "title", issue->title);
	sl_json_int(j, "hit_count", issue->hits);
	write_time(j, "first_seen_ns", issue->first_ns);
	write_time(j, "last_seen_ns", issue->last_ns);
	write_sessions(j, issue);
	write_evidence(j, "representative_evidence", issue->first);
	sl_json_array(j, "evidence");
	for (const struct sl_evidence *e = issue->first; e; e = e->next)
		write_evidence(j, NULL, e);
	sl_json_end(j);
	sl_json_value(j, "details", issue->details);
	sl_json_end(j);
}

/* The array, the worst first.  states: see sl_issues_write. */
static void issue_list_write(struct sl_json *j, const char *key, struct issue_list *all, const struct sl_value *states)
{
	if (all->count)
		qsort(all->list, all->count, sizeof(*all->list), by_importance);
	sl_json_array(j, key);
	for (size_t i = 0; i < all->count; i++)
		write_issue(j, &all->list[i], states);
	sl_json_end(j);
}

static void issue_list_free(struct issue_list *all)
{
	free(all->list);
	sl_map_free(&all->places);
	sl_arena_free(&all->arena);
}

/* --- bundles ------------------------------------------------------------------------------------------------ */

static struct sl_value raw_or_null(const struct sl_value *value)
{
	return value ? *value : (struct sl_value){.kind = SL_VALUE_NULL};
}

/* ISO 8601 as bundles write it, to Unix nanoseconds; ISSUE_NO_TIME when it is something else. */
static int64_t parse_utc(const char *text)
{
	struct tm tm = {0};
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	double fraction = 0;

	if (!rest)
		return ISSUE_NO_TIME;
	if (*rest == '.') {
		char *end;

		fraction = strtod(rest, &end);
		rest = end;
	}
	int sign = *rest == '+' ? 1 : -1, hours = 0, minutes = 0;

	if (strcmp(rest, "Z") != 0 && *rest && (strchr("+-", *rest) == NULL || sscanf(rest + 1, "%2d:%2d", &hours, &minutes) != 2))
		return ISSUE_NO_TIME;
	int64_t seconds = (int64_t)timegm(&tm) - (hours || minutes ? sign * (hours * 3600 + minutes * 60) : 0);

	return (int64_t)(((double)seconds + fraction) * 1e9);
}

static int by_creation(const void *a, const void *b)
{
	const struct sl_oom_row *const *x = a, *const *y = b;

	return strcmp((*x)->created_at_utc ? (*x)->created_at_utc : "", (*y)->created_at_utc ? (*y)->created_at_utc : "")
		       ?: strcmp((*x)->path, (*y)->path);
}

static void add_bundles(struct issue_list *all, const struct sl_telemetry *t)
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
		issue_list_add(all, "oom", "OOM captured by flight recorder", "critical", dimensions, details, &evidence);
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

static const char *event_backend(struct sl_arena *arena, const struct sl_v3_event *event)
{
	return sl_event_dimension_of(arena, sl_value_get(event->metadata, "backend"), "unknown");
}

static void add_oom(struct issue_list *all, const struct row *row)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_v3_event *event = row->event;
	struct sl_value backend = sl_value_of_text(event_backend(arena, event));
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
	issue_list_add(all, "oom", "OOM telemetry event", "critical", dimensions, details, &evidence);
}

static void add_degradation(struct issue_list *all, const struct row *row)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_v3_event *event = row->event;
	const struct sl_value *partial = sl_value_get(event->metadata, "collector_partial_fields");
	const char *health = sl_event_dimension_of(arena, sl_value_get(event->metadata, "collector_health_status"), "degraded");
	struct sl_value *object = sl_value_object(arena, 5), *metadata = sl_value_object(arena, 3);
	struct sl_evidence evidence = evidence_of(row, metadata);

	sl_value_set(object, "backend", sl_value_of_text(event_backend(arena, event)));
	sl_value_set(object, "collector", sl_value_of_text(event->collector));
	sl_value_set(
		object, "error_stem",
		sl_value_of_text(sl_issues_fingerprint_error_stem(arena, sl_value_get(event->metadata, "collector_last_error"))));
	sl_value_set(object, "health_status", sl_value_of_text(health));
	sl_value_set(object, "partial_fields",
		     sl_value_is(partial, SL_VALUE_ARRAY) ? *partial : (struct sl_value){.kind = SL_VALUE_ARRAY});
	sl_value_set(metadata, "collector_consecutive_failures",
		     raw_or_null(sl_value_get(event->metadata, "collector_consecutive_failures")));
	sl_value_set(metadata, "collector_next_retry_epoch_s",
		     raw_or_null(sl_value_get(event->metadata, "collector_next_retry_epoch_s")));
	sl_value_set(metadata, "session_status", sl_value_of_text(sl_session_status_names[row->session->summary.status]));
	issue_list_add(all, "collector_degradation", "Collector degradation",
		       strcmp(health, "unhealthy") == 0 ? "critical" : "warning", object, object, &evidence);
}

static const char *spaces_for_underscores(struct sl_arena *arena, const char *text)
{
	char *copy = sl_arena_strdup(arena, text);

	for (char *at = copy; *at; at++)
		*at = *at == '_' ? ' ' : *at;
	return copy;
}

static void add_alert(struct issue_list *all, const struct row *row)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_v3_event *event = row->event;
	const struct sl_value context = sl_value_of_text(event->context);
	const char *severity = sl_event_severity(arena, event), *category = sl_issues_fingerprint_category(arena, &context);
	struct sl_value *dimensions = sl_value_object(arena, 5), *details = sl_value_object(arena, 4);
	struct sl_evidence evidence = evidence_of(row, context_metadata(arena, row));
	struct sl_value backend = sl_value_of_text(event_backend(arena, event));

	sl_value_set(dimensions, "backend", backend);
	sl_value_set(dimensions, "category", sl_value_of_text(category));
	sl_value_set(dimensions, "collector", sl_value_of_text(event->collector));
	sl_value_set(dimensions, "event_type", sl_value_of_text(event->event_type));
	sl_value_set(dimensions, "severity", sl_value_of_text(severity));
	sl_value_set(details, "backend", backend);
	sl_value_set(details, "category", sl_value_of_text(category));
	sl_value_set(details, "collector", sl_value_of_text(event->collector));
	sl_value_set(details, "event_type", sl_value_of_text(event->event_type));
	issue_list_add(all, "alert", sl_arena_printf(arena, "Alert: %s", spaces_for_underscores(arena, category)), severity,
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

static void add_events(struct issue_list *all, const struct sl_telemetry *t)
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

/* One line for people and fingerprints, a copy in the arena; NULL for none. */
static const char *phases_summary(struct sl_arena *arena, const struct sl_phase_attribution *a)
{
	if (a->path_count == 0)
		return NULL;
	if (a->summary)
		return sl_arena_printf(arena, "(likely) %s", a->summary);
	if (a->unique)
		return sl_arena_strdup(arena, a->paths[0]);
	size_t size = sizeof("(ambiguous) ");

	for (size_t i = 0; i < a->path_count; i++)
		size += strlen(a->paths[i]) + strlen(" | ");
	char *text = sl_arena_alloc(arena, size), *end = stpcpy(text, "(ambiguous) ");

	for (size_t i = 0; i < a->path_count; i++)
		end = stpcpy(i ? stpcpy(end, " | ") : end, a->paths[i]);
	return text;
}

static void add_finding(struct issue_list *all, const struct sl_session *session, const struct sl_gap_finding *finding)
{
	struct sl_arena *arena = &all->arena;
	const struct sl_v3_event *event = first_at(session, finding->event->timestamp_ns);
	const char *classification = sl_gap_kind_names[finding->kind], *severity = finding->critical ? "critical" : "warning";
	struct sl_value phase = sl_value_of_text(phases_summary(arena, &finding->phase));
	struct sl_value *dimensions = sl_value_object(arena, 5), *details = sl_value_object(arena, 5),
			*metadata = sl_value_object(arena, 3);
	struct row row = {event, session};
	struct sl_evidence evidence = evidence_of(&row, metadata);

	evidence.session_id = session->summary.session_id;
	sl_value_set(dimensions, "backend", sl_value_of_text(event_backend(arena, event)));
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
	issue_list_add(all, "hidden_memory_anomaly", sl_arena_printf(arena, "Hidden-memory anomaly: %s", classification), severity,
		       dimensions, details, &evidence);
}

static void add_hidden_memory(struct issue_list *all, const struct sl_telemetry *t)
{
	for (size_t s = 0; s < t->loaded.count; s++) {
		const struct sl_session *session = &t->loaded.item[s];
		struct sl_session_series series;
		struct sl_phases phases;
		struct sl_gap_result gaps;

		if (!has_issues(session) || session->count < 3)
			continue;
		sl_series_init(&series, session, &all->arena);
		sl_phases_init(&phases, &series, &all->arena);
		sl_gap_analyze(&series.all, &phases, &sl_gap_defaults, &gaps);
		for (size_t i = 0; i < gaps.count; i++)
			add_finding(all, session, &gaps.findings[i]);
	}
}

void sl_issues_write(struct sl_json *j, const char *key, const struct sl_telemetry *t, const struct sl_value *states)
{
	struct issue_list all = {0};

	add_bundles(&all, t);
	add_events(&all, t);
	add_hidden_memory(&all, t);
	issue_list_write(j, key, &all, states);
	issue_list_free(&all);
}
