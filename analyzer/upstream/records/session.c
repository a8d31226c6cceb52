/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/records.h"

#include <math.h>
#include <stdlib.h>

#include "analyzer/base/stats.h"

const char *const sl_session_status_names[] = {
	[SL_SESSION_COMPLETED] = "completed",
	[SL_SESSION_INTERRUPTED] = "interrupted",
	[SL_SESSION_INCOMPLETE] = "incomplete",
	[SL_SESSION_RUNNING] = "running",
};

const char *const sl_session_kind_names[] = {
	[SL_SESSION_SINK] = "sink",	    [SL_SESSION_JSON] = "telemetry_json", [SL_SESSION_LINES] = "telemetry_jsonl",
	[SL_SESSION_CSV] = "telemetry_csv", [SL_SESSION_NATIVE] = "native_trace", [SL_SESSION_DIAGNOSE] = "diagnose_bundle",
	[SL_SESSION_BUNDLE] = "oom_bundle",
};

/* int(value) of Python: numbers are truncated, text is parsed, true is 1. */
static bool to_integer(const struct sl_value *value, int64_t *out)
{
	char *end;

	switch (value->kind) {
	case SL_VALUE_INT:
		*out = (int64_t)value->integer;
		return value->integer == *out;
	case SL_VALUE_BOOL:
		*out = value->truth;
		return true;
	case SL_VALUE_DOUBLE:
		if (!(fabs(value->real) < 9e18))
			return false;
		*out = sl_stats_whole(value->real);
		return true;
	case SL_VALUE_STRING:
		*out = strtoll(value->text, &end, 10);
		return end != value->text && sl_utf8_is_blank(end);
	default:
		return false;
	}
}

static bool integer_or(const struct sl_value *object, const char *key, int64_t missing, int64_t *out)
{
	const struct sl_value *value = sl_value_get(object, key);

	*out = missing;
	return !value || to_integer(value, out);
}

static const char *full_text(const struct sl_value *object, const char *key)
{
	const char *text = sl_value_get_text(object, key);

	return text && !sl_utf8_is_blank(text) ? text : NULL;
}

static bool to_status(const char *text, enum sl_session_status *status)
{
	for (int i = SL_SESSION_COMPLETED; text && i <= SL_SESSION_RUNNING; i++) {
		if (sl_utf8_matches(text, sl_session_status_names[i])) {
			*status = (enum sl_session_status)i;
			return true;
		}
	}
	return false;
}

bool sl_session_summary_read(const struct sl_value *value, struct sl_session_summary *summary)
{
	const struct sl_value *ended = sl_value_get(value, "ended_at_ns"), *started = sl_value_get(value, "started_at_ns");

	memset(summary, 0, sizeof(*summary));
	summary->session_id = full_text(value, "session_id");
	summary->source = full_text(value, "source");
	summary->host = full_text(value, "host");
	summary->job_id = sl_value_get_text(value, "job_id");
	summary->has_end = ended && ended->kind != SL_VALUE_NULL;
	if (!summary->session_id || !summary->source || !summary->host || !started ||
	    !to_status(sl_value_get_text(value, "status"), &summary->status) || !to_integer(started, &summary->started_at_ns) ||
	    (summary->has_end && !to_integer(ended, &summary->ended_at_ns)) || !integer_or(value, "pid", -1, &summary->pid) ||
	    !integer_or(value, "rank", 0, &summary->rank) || !integer_or(value, "local_rank", 0, &summary->local_rank) ||
	    !integer_or(value, "world_size", 1, &summary->world_size))
		return false;
	if (summary->world_size < 1)
		summary->world_size = 1;
	return true;
}

void sl_session_summary_write(struct sl_json *j, const char *key, const struct sl_session_summary *summary)
{
	sl_json_object(j, key);
	sl_json_string(j, "session_id", summary->session_id);
	sl_json_string(j, "status", sl_session_status_names[summary->status]);
	sl_json_int(j, "started_at_ns", summary->started_at_ns);
	if (summary->has_end)
		sl_json_int(j, "ended_at_ns", summary->ended_at_ns);
	else
		sl_json_null(j, "ended_at_ns");
	sl_json_string(j, "host", summary->host);
	sl_json_int(j, "pid", summary->pid);
	sl_json_string(j, "job_id", summary->job_id);
	sl_json_int(j, "rank", summary->rank);
	sl_json_int(j, "local_rank", summary->local_rank);
	sl_json_int(j, "world_size", summary->world_size);
	sl_json_string(j, "source", summary->source);
	sl_json_end(j);
}

void sl_session_add_event(struct sl_session *session, const struct sl_v3_event *event)
{
	session->events = sl_arena_grow(session->events, &session->capacity, session->count, sizeof(*session->events));
	session->events[session->count++] = *event;
}
