/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/files/files.h"

#include <unistd.h>

#include "analyzer/base/stats.h"

static const char rollups_format[] = "stormlog.telemetry_rollups";

const struct sl_sink_options sl_sink_defaults = {
	.segment_events = 10000, .segment_bytes = INT64_C(64) << 20, .rollup_window_ns = SL_ROLLUP_WINDOW_NS};

struct sink {
	struct sl_folder folder;
	const struct sl_sink_options *options;
	struct sl_arena arena;
	struct sl_manifest_segment *segments;
	size_t segment_count, segment_capacity;
	const struct sl_session **sessions; /* by start */
	size_t session_count;
};

static int by_start(const void *a, const void *b)
{
	const struct sl_session_summary *x = &(*(const struct sl_session *const *)a)->summary;
	const struct sl_session_summary *y = &(*(const struct sl_session *const *)b)->summary;

	return SL_RISING(x->started_at_ns, y->started_at_ns) ?: strcmp(x->session_id, y->session_id);
}

/* Writes events from *next on until the segment is full. */
static bool write_segment(struct sink *sink, const struct sl_session *session, size_t *next)
{
	char name[32];
	struct sl_json *line = sl_json_new(NULL, SL_JSON_PYTHON);
	struct sl_manifest_segment segment = {.session_id = session->summary.session_id, .closed = true};

	sl_json_thin(line, 1, 0);
	snprintf(name, sizeof(name), "segment-%06zu.jsonl", sink->segment_count + 1);
	segment.filename = sl_arena_strdup(&sink->arena, name);
	FILE *file = sl_folder_open(&sink->folder, name);

	while (file && *next < session->count && segment.event_count < sink->options->segment_events &&
	       segment.size_bytes < sink->options->segment_bytes) {
		size_t length;

		sl_json_rewind(line);
		sl_event_write(line, &session->events[(*next)++]);
		sl_json_newline(line);
		const char *text = sl_json_text(line, &length);

		fwrite(text, 1, length, file);
		segment.event_count++;
		segment.size_bytes += (int64_t)length;
	}
	sl_json_close(line);
	if (session->summary.status == SL_SESSION_RUNNING && *next == session->count)
		segment.closed = false;
	sink->segments = sl_arena_grow(sink->segments, &sink->segment_capacity, sink->segment_count, sizeof(segment));
	sink->segments[sink->segment_count++] = segment;
	return sl_folder_close(&sink->folder, file, name);
}

static void write_manifest(struct sink *sink)
{
	FILE *file;
	struct sl_json *j = sl_folder_json(&sink->folder, "manifest.json", &file);

	sl_json_object(j, NULL);
	sl_json_int(j, "schema_version", 2);
	sl_json_string(j, "format", SL_MANIFEST_SINK_FORMAT);
	sl_json_array(j, "sessions");
	for (size_t i = 0; i < sink->session_count; i++)
		sl_session_summary_write(j, NULL, &sink->sessions[i]->summary);
	sl_json_end(j);
	sl_json_array(j, "segments");
	for (size_t i = 0; i < sink->segment_count; i++)
		sl_manifest_write_segment(j, &sink->segments[i]);
	sl_json_end(j);
	sl_json_end(j);
	sl_folder_json_close(&sink->folder, j, file, "manifest.json");
}

static void write_coverage(struct sl_json *j, const struct sink *sink)
{
	int64_t events = 0, bytes = 0;

	sl_json_object(j, "coverage");
	sl_json_array(j, "retained_segment_filenames");
	for (size_t i = 0; i < sink->segment_count; i++) {
		sl_json_string(j, NULL, sink->segments[i].filename);
		events += sink->segments[i].event_count;
		bytes += sink->segments[i].size_bytes;
	}
	sl_json_end(j);
	sl_json_int(j, "retained_segment_count", (int64_t)sink->segment_count);
	sl_json_int(j, "retained_event_count", events);
	sl_json_int(j, "retained_bytes", bytes);
	sl_json_int(j, "pruned_segment_count", 0);
	sl_json_int(j, "pruned_bytes", 0);
	sl_json_end(j);
}

static void write_session_rollup(struct sl_json *j, const struct sink *sink, const struct sl_session *session)
{
	struct sl_session copy = *session;
	struct sl_session_series series;
	struct sl_arena arena = {0};
	const char **sources = sl_arena_alloc(&arena, (sink->segment_count + 1) * sizeof(*sources));

	copy.sources = sources;
	copy.source_count = 0;
	for (size_t i = 0; i < sink->segment_count; i++)
		if (strcmp(sink->segments[i].session_id, session->summary.session_id) == 0)
			sources[copy.source_count++] = sink->segments[i].filename;
	sl_series_init(&series, &copy, &arena);
	sl_rollup_write(j, NULL, &copy, &series, sink->options->rollup_window_ns);
	sl_arena_free(&arena);
}

/* The time of the newest event, not of the writing: the same sessions give the same bytes. */
static int64_t newest(const struct sink *sink)
{
	int64_t ns = 0;

	for (size_t i = 0; i < sink->session_count; i++) {
		const struct sl_session *session = sink->sessions[i];

		if (session->summary.has_end && session->summary.ended_at_ns > ns)
			ns = session->summary.ended_at_ns;
		if (session->count && session->events[session->count - 1].timestamp_ns > ns)
			ns = session->events[session->count - 1].timestamp_ns;
	}
	return ns;
}

static void write_rollups(struct sink *sink)
{
	FILE *file;
	struct sl_json *j = sl_folder_json(&sink->folder, "rollups.json", &file);

	sl_json_object(j, NULL);
	sl_json_int(j, "schema_version", 1);
	sl_json_string(j, "format", rollups_format);
	sl_json_int(j, "generated_at_ns", newest(sink));
	sl_json_string(j, "source_manifest", "manifest.json");
	sl_json_int(j, "source_manifest_schema_version", 2);
	sl_json_int(j, "window_duration_ns", sink->options->rollup_window_ns);
	write_coverage(j, sink);
	sl_json_array(j, "sessions");
	for (size_t i = 0; i < sink->session_count; i++)
		write_session_rollup(j, sink, sink->sessions[i]);
	sl_json_end(j);
	sl_json_end(j);
	sl_folder_json_close(&sink->folder, j, file, "rollups.json");
}

bool sl_sink_write(const char *folder, const struct sl_session *const *sessions, size_t count,
		   const struct sl_sink_options *options)
{
	struct sink sink = {.options = options ? options : &sl_sink_defaults, .session_count = count};

	if (!sl_folder_begin(&sink.folder, folder))
		return sl_folder_end(&sink.folder);
	sink.sessions = sl_arena_alloc(&sink.arena, (count + 1) * sizeof(*sink.sessions));
	memcpy(sink.sessions, sessions, count * sizeof(*sink.sessions));
	qsort(sink.sessions, count, sizeof(*sink.sessions), by_start);
	for (size_t i = 0; i < count; i++)
		for (size_t next = 0; next < sink.sessions[i]->count;)
			if (!write_segment(&sink, sink.sessions[i], &next))
				break;
	write_manifest(&sink);
	if (sink.options->rollup_window_ns > 0)
		write_rollups(&sink);
	free(sink.segments);
	sl_arena_free(&sink.arena);
	return sl_folder_end(&sink.folder);
}

/* --- freshness ---------------------------------------------------------------------------------------------- */

static bool same_names(const struct sl_value *names, const struct sl_manifest *manifest)
{
	if (!sl_value_is(names, SL_VALUE_ARRAY) || names->count != manifest->segment_count)
		return false;
	for (uint32_t i = 0; i < names->count; i++)
		if (names->items[i].kind != SL_VALUE_STRING || strcmp(names->items[i].text, manifest->segments[i].filename) != 0)
			return false;
	return true;
}

static bool is_fresh(const struct sl_value *rollups, const struct sl_manifest *manifest)
{
	const struct sl_value *coverage = sl_value_get(rollups, "coverage");
	int64_t version, events, bytes, own_events = 0, own_bytes = 0;

	for (size_t i = 0; i < manifest->segment_count; i++) {
		own_events += manifest->segments[i].event_count;
		own_bytes += manifest->segments[i].size_bytes;
	}
	return sl_value_get_int64(rollups, "source_manifest_schema_version", &version) && version == manifest->schema_version &&
	       sl_value_get_int64(coverage, "retained_event_count", &events) && events == own_events &&
	       sl_value_get_int64(coverage, "retained_bytes", &bytes) && bytes == own_bytes &&
	       same_names(sl_value_get(coverage, "retained_segment_filenames"), manifest);
}

enum sl_rollups_state sl_sink_rollups_state(const char *folder)
{
	struct sl_arena arena = {0};
	struct sl_value_error error;
	struct sl_manifest manifest;
	size_t skipped = 0;
	const char *path = sl_arena_printf(&arena, "%s/rollups.json", folder);
	enum sl_rollups_state state = SL_ROLLUPS_ABSENT;

	if (access(path, F_OK) == 0) {
		const struct sl_value *rollups = sl_value_read(&arena, path, &error);
		const struct sl_value *ledger = sl_value_read(&arena, sl_arena_printf(&arena, "%s/manifest.json", folder), &error);
		const char *format = sl_value_get_text(rollups, "format");

		sl_manifest_read(&arena, ledger, &manifest, &skipped);
		if (!format || strcmp(format, rollups_format) != 0)
			state = SL_ROLLUPS_BROKEN;
		else
			state = !ledger || is_fresh(rollups, &manifest) ? SL_ROLLUPS_FRESH : SL_ROLLUPS_STALE;
	}
	sl_arena_free(&arena);
	return state;
}
