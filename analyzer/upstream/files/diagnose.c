/* SPDX-License-Identifier: MIT */
/* Diagnose bundles: three columns of a timeline become sample events of the bundle's session. */
#include <ctype.h>
#include <math.h>

#include "analyzer/base/stats.h"
#include "analyzer/upstream/files/files.h"

struct columns {
	const struct sl_value *timestamps, *allocated, *reserved;
	uint32_t count;
};

static bool read_columns(const struct sl_value *payload, struct columns *c)
{
	c->timestamps = sl_value_get(payload, "timestamps");
	c->allocated = sl_value_get(payload, "allocated");
	c->reserved = sl_value_get(payload, "reserved");
	if (!sl_value_is(c->reserved, SL_VALUE_ARRAY))
		c->reserved = c->allocated;
	if (!sl_value_is(c->timestamps, SL_VALUE_ARRAY) || !sl_value_is(c->allocated, SL_VALUE_ARRAY))
		return false;
	c->count = c->timestamps->count;
	c->count = c->count < c->allocated->count ? c->count : c->allocated->count;
	c->count = c->count < c->reserved->count ? c->count : c->reserved->count;
	return true;
}

/* A number of either kind that is at least `least` and below 2^62. */
static bool to_number(const struct sl_value *value, double *out)
{
	*out = value->kind == SL_VALUE_INT ? (double)value->integer : value->kind == SL_VALUE_DOUBLE ? value->real : NAN;
	return fabs(*out) < 4e18;
}

static int64_t whole(const struct sl_value *value)
{
	return value->kind == SL_VALUE_INT ? (int64_t)value->integer : sl_stats_whole(value->real);
}

static bool hint(const struct sl_value *payload, const char *key, int64_t least, int64_t *out)
{
	const struct sl_value *places[] = {payload, sl_value_get(payload, "metadata"),
					   sl_value_get(payload, "distributed_identity")};

	for (size_t i = 0; i < 3; i++)
		if (sl_value_get_int64(places[i], key, out) && *out >= least && *out <= INT32_MAX)
			return true;
	return false;
}

/* rank3, rank_3, rank-3 as a word of one part of the path, innermost part first; not local_rank3. */
static bool rank_of_path(const char *path, int64_t *rank)
{
	const char *part = path + strlen(path);

	while (part > path) {
		const char *end = part;

		while (part > path && part[-1] != '/')
			part--;
		for (const char *at = part; at + 5 <= end; at++) {
			if (strncasecmp(at, "rank", 4) != 0 || (at > part && isalnum((unsigned char)at[-1])) ||
			    (at - part >= 6 && strncasecmp(at - 6, "local", 5) == 0))
				continue;
			const char *digits = at + 4 + (at[4] == '-' || at[4] == '_');

			if (isdigit((unsigned char)*digits) && strspn(digits, "0123456789") < 9) {
				*rank = atoll(digits);
				return true;
			}
		}
		if (part > path)
			part--;
	}
	return false;
}

static void resolve_rank(struct sl_telemetry *t, const char *path, const struct sl_value *payload,
			 struct sl_session_summary *summary)
{
	char *real = realpath(path, NULL);
	int64_t world = 1;

	if (!hint(payload, "rank", 0, &summary->rank) && !rank_of_path(real ? real : path, &summary->rank))
		summary->rank = t->next_rank;
	free(real);
	if (!hint(payload, "local_rank", 0, &summary->local_rank))
		summary->local_rank = summary->rank;
	hint(payload, "world_size", 1, &world);
	if (world <= summary->rank)
		world = summary->rank + 1;
	if (world <= summary->local_rank)
		world = summary->local_rank + 1;
	if (world < t->max_world_size)
		world = t->max_world_size;
	summary->world_size = world;
	if (summary->rank >= t->next_rank)
		t->next_rank = (int32_t)summary->rank + 1;
	if (world > t->max_world_size)
		t->max_world_size = (int32_t)world;
}

/* The bundle's own summary, or one made up from the timeline. */
static void read_summary(struct sl_telemetry *t, const char *folder, const char *timeline, const struct columns *c,
			 struct sl_session_summary *summary)
{
	struct sl_value_error error = {0};
	const struct sl_value *manifest = sl_value_read(&t->arena, sl_arena_printf(&t->arena, "%s/manifest.json", folder), &error);
	const char *id = sl_value_get_text(manifest, "session_id"), *status = sl_value_get_text(manifest, "session_status");
	char *real = realpath(timeline, NULL);
	const char *parts[] = {sl_arena_strdup(&t->arena, real ? real : timeline), "diagnose.timeline"};
	double seconds;

	free(real);
	if (sl_session_summary_read(sl_value_get(manifest, "session"), summary))
		return;
	*summary = (struct sl_session_summary){
		.session_id = id && !sl_utf8_is_blank(id) ? id : sl_record_session_id(&t->arena, parts, 2),
		.source = id && !sl_utf8_is_blank(id) ? "stormlog.diagnose.bundle" : "stormlog.diagnose.timeline",
		.host = "unknown",
		.pid = -1,
		.status = SL_SESSION_INCOMPLETE,
		.started_at_ns = to_number(&c->timestamps->items[0], &seconds) && seconds < 9e9 ? (int64_t)(seconds * 1e9) : 0,
	};
	for (int i = SL_SESSION_COMPLETED; status && i <= SL_SESSION_RUNNING; i++)
		if (sl_utf8_matches(status, sl_session_status_names[i]))
			summary->status = (enum sl_session_status)i;
}

static const struct sl_value *source_metadata(struct sl_telemetry *t)
{
	struct sl_value *object = sl_value_object(&t->arena, 1);

	sl_value_set(object, "source", sl_value_of_text("diagnose.telemetry_timeline"));
	return object;
}

static void add_samples(struct sl_telemetry *t, const char *timeline, const struct columns *c, struct sl_session *session)
{
	const struct sl_session_summary *s = &session->summary;
	const struct sl_value *metadata = source_metadata(t);
	double seconds, before = NAN, allocated, reserved;
	int64_t last = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		if (!to_number(&c->timestamps->items[i], &seconds) || !(seconds >= 0 && seconds < 9e9) ||
		    !to_number(&c->allocated->items[i], &allocated) || !to_number(&c->reserved->items[i], &reserved) ||
		    allocated < 0 || reserved < 0) {
			sl_telemetry_problem(t, SL_SOURCE_RECORD, timeline, c->timestamps->items[i].line,
					     "a sample of the timeline makes no sense");
			continue;
		}
		int64_t bytes = whole(&c->allocated->items[i]), held = whole(&c->reserved->items[i]);
		double interval = isnan(before) ? 0 : nearbyint((seconds - before) * 1000);
		struct sl_v3_event event = {
			.timestamp_ns = (int64_t)(seconds * 1e9),
			.allocated_bytes = bytes,
			.reserved_bytes = held,
			.change_bytes = bytes - last,
			.used_bytes = bytes > held ? bytes : held,
			.active_bytes = SL_EVENT_UNKNOWN,
			.inactive_bytes = SL_EVENT_UNKNOWN,
			.free_bytes = SL_EVENT_UNKNOWN,
			.total_bytes = SL_EVENT_UNKNOWN,
			.pid = s->pid,
			.interval_ms = interval > 0 ? (int64_t)interval : 0,
			.rank = (int32_t)s->rank,
			.local_rank = (int32_t)s->local_rank,
			.world_size = (int32_t)s->world_size,
			.session_id = s->session_id,
			.event_type = "sample",
			.collector = "stormlog.diagnose.timeline",
			.host = s->host,
			.job_id = s->job_id,
			.context = "diagnose timeline sample",
			.metadata = metadata,
		};

		sl_session_add_event(session, &event);
		last = bytes;
		before = seconds;
	}
	sl_event_sort(session->events, session->count);
}

void sl_diagnose_load(struct sl_telemetry *t, const char *folder)
{
	const char *timeline = sl_arena_printf(&t->arena, "%s/telemetry_timeline.json", folder);
	struct sl_value_error error = {0};
	const struct sl_value *payload = sl_value_read(&t->arena, timeline, &error);
	struct columns c = {0};
	const char **source = sl_arena_alloc(&t->arena, sizeof(*source));

	if (!payload || !read_columns(payload, &c) || c.count == 0) {
		sl_telemetry_problem(t, SL_SOURCE_FILE, timeline, payload ? payload->line : error.line,
				     payload ? "the timeline has no samples" : error.reason);
		return;
	}
	struct sl_session_summary summary;

	read_summary(t, folder, timeline, &c, &summary);
	resolve_rank(t, timeline, payload, &summary);
	struct sl_session *session = sl_telemetry_new_loaded(t);

	*source = sl_telemetry_display(t, timeline);
	session->summary = summary;
	session->kind = SL_SESSION_DIAGNOSE;
	session->sources = source;
	session->source_count = 1;
	add_samples(t, timeline, &c, session);
}
