/* SPDX-License-Identifier: MIT */
/* OOM bundles: the manifest, the metadata, and the events of the last moments. */
#include <unistd.h>

#include "analyzer/upstream/files/files.h"

/* NULL for an empty text too. */
static const char *text_of(const struct sl_value *object, const char *key)
{
	const char *text = sl_value_get_text(object, key);

	return text && *text ? text : NULL;
}

void sl_bundle_load(struct sl_telemetry *t, const char *folder, const struct sl_value *manifest)
{
	const char *path = sl_arena_printf(&t->arena, "%s/metadata.json", folder);
	struct sl_value_error error = {0};
	const struct sl_value *metadata = sl_value_read(&t->arena, path, &error);
	int64_t count;

	if (!metadata)
		sl_telemetry_problem(t, SL_SOURCE_FILE, path, error.line, error.reason);
	*SL_PUSH(&t->bundles) = (struct sl_oom_row){
		.path = sl_telemetry_display(t, folder),
		.created_at_utc = text_of(manifest, "created_at_utc"),
		.backend = text_of(manifest, "backend"),
		.reason = text_of(manifest, "reason"),
		.session_id = text_of(manifest, "session_id"),
		.session_status = text_of(manifest, "session_status"),
		.exception_type = text_of(metadata, "exception_type"),
		.exception_module = text_of(metadata, "exception_module"),
		.exception_message = text_of(metadata, "exception_message"),
		.context = text_of(metadata, "context"),
		.account = sl_value_get(sl_value_get(metadata, "custom_metadata"), "account"),
		.event_count = sl_value_get_int64(manifest, "event_count", &count) ? count : SL_EVENT_UNKNOWN,
	};
	path = sl_arena_printf(&t->arena, "%s/events.json", folder);
	if (access(path, F_OK) == 0)
		sl_telemetry_load_file(t, path, SL_SESSION_BUNDLE);
	else
		sl_telemetry_problem(t, SL_SOURCE_FILE, path, 0, "the bundle has no events");
}
