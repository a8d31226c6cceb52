/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/files/files.h"

static bool has_all(const struct sl_value *payload, const char *const *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!sl_value_get(payload, keys[i]))
			return false;
	return true;
}

enum sl_manifest_kind sl_manifest_kind_of(const struct sl_value *payload)
{
	static const char *const oom[] = {"bundle_name", "reason", "backend", "event_count"};
	static const char *const diagnose[] = {"command_line", "files", "risk_detected", "session_id"};
	const char *format = sl_value_get_text(payload, "format");

	if (!sl_value_is(payload, SL_VALUE_OBJECT))
		return SL_MANIFEST_NONE;
	if (has_all(payload, oom, 4))
		return SL_MANIFEST_OOM;
	if (has_all(payload, diagnose, 4))
		return SL_MANIFEST_DIAGNOSE;
	if ((format && strcmp(format, SL_MANIFEST_SINK_FORMAT) == 0) || sl_value_get(payload, "segments"))
		return SL_MANIFEST_SINK;
	return SL_MANIFEST_NONE;
}

static int64_t count_of(const struct sl_value *object, const char *key)
{
	int64_t count;

	return sl_value_get_int64(object, key, &count) && count >= 0 ? count : 0;
}

static void read_sessions(struct sl_arena *arena, const struct sl_value *rows, struct sl_manifest *manifest, size_t *skipped)
{
	struct sl_session_summary *sessions = sl_arena_alloc(arena, rows->count * sizeof(*sessions));

	for (uint32_t i = 0; i < rows->count; i++) {
		if (sl_session_summary_read(&rows->items[i], &sessions[manifest->session_count]))
			manifest->session_count++;
		else
			++*skipped;
	}
	manifest->sessions = sessions;
}

static void read_segments(struct sl_arena *arena, const struct sl_value *rows, struct sl_manifest *manifest, size_t *skipped)
{
	struct sl_manifest_segment *segments = sl_arena_alloc(arena, rows->count * sizeof(*segments));

	for (uint32_t i = 0; i < rows->count; i++) {
		const struct sl_value *row = &rows->items[i], *closed = sl_value_get(row, "closed");
		const char *filename = sl_value_get_text(row, "filename");

		/* A name with a slash would lead out of the folder. */
		if (!filename || !*filename || strchr(filename, '/')) {
			++*skipped;
			continue;
		}
		segments[manifest->segment_count++] = (struct sl_manifest_segment){
			.filename = filename,
			.event_count = count_of(row, "event_count"),
			.size_bytes = count_of(row, "size_bytes"),
			.closed = sl_value_is(closed, SL_VALUE_BOOL) && closed->truth,
			.session_id = sl_value_get_text(row, "session_id"),
		};
	}
	manifest->segments = segments;
}

void sl_manifest_read(struct sl_arena *arena, const struct sl_value *payload, struct sl_manifest *manifest, size_t *skipped)
{
	const struct sl_value *sessions = sl_value_get(payload, "sessions"), *segments = sl_value_get(payload, "segments");

	*manifest = (struct sl_manifest){0};
	if (!sl_value_get_int64(payload, "schema_version", &manifest->schema_version) || manifest->schema_version < 1)
		manifest->schema_version = 1;
	if (manifest->schema_version >= 2 && sl_value_is(sessions, SL_VALUE_ARRAY))
		read_sessions(arena, sessions, manifest, skipped);
	if (sl_value_is(segments, SL_VALUE_ARRAY))
		read_segments(arena, segments, manifest, skipped);
}

void sl_manifest_write_segment(struct sl_json *j, const struct sl_manifest_segment *segment)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "filename", segment->filename);
	sl_json_int(j, "event_count", segment->event_count);
	sl_json_int(j, "size_bytes", segment->size_bytes);
	sl_json_bool(j, "closed", segment->closed);
	sl_json_string(j, "session_id", segment->session_id);
	sl_json_end(j);
}
