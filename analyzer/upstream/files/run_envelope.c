/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/files/files.h"

static const char *or_null(const char *text)
{
	return text && !sl_utf8_is_blank(text) ? text : NULL;
}

static void write_tags(struct sl_json *j, const struct sl_run_envelope *run)
{
	struct sl_map seen = {0};

	sl_json_array(j, "tags");
	for (size_t i = 0; i < run->tag_count; i++)
		if (or_null(run->tags[i]) && (*sl_map_at(&seen, run->tags[i]))++ == 0)
			sl_json_string(j, NULL, run->tags[i]);
	sl_json_end(j);
	sl_map_free(&seen);
}

static void write_empty_metadata(struct sl_json *j)
{
	sl_json_object(j, "metadata");
	sl_json_end(j);
}

static void write_session(struct sl_json *j, const struct sl_session_summary *session)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", session->session_id);
	sl_json_string(j, "job_id", or_null(session->job_id));
	sl_json_int(j, "rank", session->rank);
	sl_json_int(j, "local_rank", session->local_rank);
	sl_json_int(j, "world_size", session->world_size);
	write_empty_metadata(j);
	sl_json_end(j);
}

static void write_attachment(struct sl_json *j, const struct sl_run_attachment *attachment)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "title", attachment->title);
	sl_json_string(j, "kind", attachment->kind);
	sl_json_string(j, "storage", "reference");
	sl_json_string(j, "path", attachment->path);
	sl_json_string(j, "session_id", or_null(attachment->session_id));
	sl_json_known(j, "start_ns", attachment->start_ns);
	sl_json_known(j, "end_ns", attachment->end_ns);
	write_empty_metadata(j);
	sl_json_end(j);
}

void sl_run_envelope_write(struct sl_json *j, const struct sl_run_envelope *run)
{
	/* An end before the start would have the whole file refused. */
	bool ends = run->ended_at_ns >= 0 && run->ended_at_ns >= run->started_at_ns;

	sl_json_object(j, NULL);
	sl_json_int(j, "schema_version", 1);
	sl_json_string(j, "format", "stormlog.run_envelope");
	sl_json_string(j, "run_id", run->run_id);
	sl_json_string(j, "title", or_null(run->title));
	sl_json_null(j, "description");
	sl_json_string(j, "job_id", or_null(run->job_id));
	sl_json_known(j, "started_at_ns", run->started_at_ns);
	sl_json_known(j, "ended_at_ns", ends ? run->ended_at_ns : SL_EVENT_UNKNOWN);
	sl_json_null(j, "created_at_utc");
	write_tags(j, run);
	sl_json_array(j, "sessions");
	for (size_t i = 0; i < run->session_count; i++)
		write_session(j, run->sessions[i]);
	sl_json_end(j);
	sl_json_array(j, "attachments");
	for (size_t i = 0; i < run->attachment_count; i++)
		write_attachment(j, &run->attachments[i]);
	sl_json_end(j);
	if (run->metadata)
		sl_json_value(j, "metadata", run->metadata);
	else
		write_empty_metadata(j);
	sl_json_end(j);
}
