/* SPDX-License-Identifier: MIT */
/* stormlog_run.json: describes the run with its sessions and files for Stormlog's `stormlog query runs`. */

#include "analyzer/base/paths.h"
#include "analyzer/outputs/output.h"
#include "analyzer/base/memory.h"
#include "analyzer/upstream/upstream.h"

static void add(struct sl_run_attachment *list, size_t *count, const char *title, const char *kind, const char *path,
		const char *session)
{
	list[(*count)++] = (struct sl_run_attachment){title, kind, path, session, SL_EVENT_UNKNOWN, SL_EVENT_UNKNOWN};
}

/* The recording's own file, wherever the analysis is written: the readable trace, else the ring. */
static void add_trace(struct sl_run_attachment *list, size_t *count, struct sl_arena *arena, const struct sl_process *process)
{
	const struct sl_trace *trace = process->trace;
	char *path = realpath(trace->file_count ? trace->files[0].path : trace->ring.path, NULL);

	if (path)
		add(list, count, "Trace", "native_trace", sl_arena_strdup(arena, path), process->session_id);
	free(path);
}

/* the same, in an object of its own */
static struct sl_value *output_metadata_value(struct sl_arena *arena, const struct sl_model *model)
{
	const struct sl_header *header = model->header;
	const struct sl_defs *defs = model->defs;
	struct sl_value *object = sl_value_object(arena, header->metadata_count + (uint32_t)defs->metadata.count);

	for (unsigned i = 0; i < header->metadata_count; i++)
		if (!sl_defs_metadata(defs, header->metadata[i].name))
			sl_value_set(object, header->metadata[i].name, sl_value_of_text(header->metadata[i].value));
	for (size_t i = 0; i < defs->metadata.count; i++)
		sl_value_set(object, defs->metadata.item[i].key, sl_value_of_text(defs->metadata.item[i].value));
	return object;
}

static bool write_envelope(struct sl_report *report, FILE *out)
{
	struct sl_arena arena = {0};
	struct sl_session *sessions = sl_sessions_all(report, &arena);
	const struct sl_session_summary **summaries = sl_memory_must(calloc(report->process_count + 1, sizeof(*summaries)));
	struct sl_run_attachment *attachments = sl_memory_must(calloc(2 * report->process_count + 3, sizeof(*attachments)));
	const struct sl_header *first = &report->processes[0].trace->header;
	struct sl_run_envelope run = {.run_id = first->run_id && *first->run_id ? first->run_id : "run",
				      .title = first->tag,
				      .job_id = first->job_id && *first->job_id ? first->job_id : NULL,
				      .started_at_ns = INT64_MAX,
				      .ended_at_ns = 0};
	struct sl_json *j = sl_json_new(out, SL_JSON_INDENT);

	add(attachments, &run.attachment_count, "Report", "report", "report.json", NULL);
	add(attachments, &run.attachment_count, "Report page", "report", "report.html", NULL);
	add(attachments, &run.attachment_count, "Summary", "report", "summary.md", NULL);
	for (unsigned i = 0; i < report->process_count; i++) {
		const char *name = sl_paths_name(report->processes[i].trace->name);

		summaries[i] = &sessions[i].summary;
		run.started_at_ns =
			summaries[i]->started_at_ns < run.started_at_ns ? summaries[i]->started_at_ns : run.started_at_ns;
		run.ended_at_ns = summaries[i]->ended_at_ns > run.ended_at_ns ? summaries[i]->ended_at_ns : run.ended_at_ns;
		add(attachments, &run.attachment_count, "Telemetry", "telemetry_sink",
		    sl_arena_printf(&arena, "telemetry/%.*s", (int)strcspn(name, "."), name), summaries[i]->session_id);
		add_trace(attachments, &run.attachment_count, &arena, &report->processes[i]);
	}
	run.metadata = output_metadata_value(&arena, report->processes[0].model);
	run.tags = &first->tag;
	run.tag_count = first->tag && *first->tag;
	run.sessions = summaries;
	run.session_count = report->process_count;
	run.attachments = attachments;
	sl_run_envelope_write(j, &run);
	sl_json_newline(j);
	for (unsigned i = 0; i < report->process_count; i++)
		free(sessions[i].events);
	free(sessions);
	free(summaries);
	free(attachments);
	sl_arena_free(&arena);
	return sl_json_close(j);
}

const struct sl_output sl_output_envelope = {.name = "stormlog_run.json", .file = write_envelope};
