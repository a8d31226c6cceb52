/* SPDX-License-Identifier: MIT */
/* stormlog-analyze merge: one sink in which all ranks share a session. */
#include <errno.h>
#include <unistd.h>

#include "analyzer/commands/commands.h"
#include "analyzer/report/missing.h"
#include "analyzer/base/paths.h"
#include "analyzer/upstream/upstream.h"

struct settings {
	const char *folder;
	bool json;
};

#define INTO struct settings
static const struct sl_option table[] = {
	{"--output", 'o', "DIR", "where the sink goes; must not exist yet, or be empty", SL_TO_TEXT(folder)},
	{"--json", 0, NULL, "print the result as one JSON object (schemas/done.schema.json)", SL_TO_FLAG(json)},
	{0},
};

static int tell(const struct sl_session *merged, const char *folder)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);

	sl_json_document(j, "stormlog.merge", 1);
	sl_json_string(j, "output", folder);
	sl_json_string(j, "session_id", merged->summary.session_id);
	sl_json_uint(j, "events", merged->count);
	return sl_json_finish(j) && !fflush(stdout) ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
}

static int write_merged(struct sl_telemetry *t, const char *folder, bool json, bool lacks)
{
	char reason[160];
	const struct sl_session *merged = sl_telemetry_merge_ranks(t, reason, sizeof(reason));

	for (size_t i = 0; i < t->problems.count; i++)
		sl_escape_print(stderr, "%s:%u: %s\n", t->problems.item[i].file, t->problems.item[i].line,
				t->problems.item[i].reason);
	lacks = lacks || t->problems.count;
	if (!merged)
		return sl_command_fail(SL_EXIT_UNREADABLE, "cannot merge: %s", reason);
	if (sl_sink_write(folder, &merged, 1, NULL)) {
		int status = json ? tell(merged, folder) : SL_EXIT_FINE;

		return status || !lacks ? status : sl_native_partly(folder);
	}
	return sl_command_fail(errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR ? SL_EXIT_USAGE : SL_EXIT_UNSAVED,
			       "cannot write %s: %m", folder);
}

/* Adds the traces of a run, with a session for each process.  *lacks: not all that is there was read. */
static int add_native(struct sl_telemetry *t, struct sl_report *report, char **paths, unsigned count, bool *lacks)
{
	const struct sl_pipeline_options options = {0};
	int status = sl_native_open(report, paths, count, &options);

	if (status != SL_EXIT_FINE)
		return status;
	sl_sessions_add(report, t);
	for (size_t i = 0; i < report->images.empty.count; i++)
		sl_escape_print(stderr, "stormlog-analyze: %s: " SL_ABSENT_EMPTY "\n", report->images.empty.item[i]);
	*lacks = sl_missing_unreadable(report) || sl_images_lacks(&report->images) || report->images.empty.count;
	return SL_EXIT_FINE;
}

static int merge(char **paths, unsigned count, const struct settings *s)
{
	struct sl_telemetry *t = sl_telemetry_new();
	struct sl_report report = {0};
	int status = SL_EXIT_FINE;
	bool native = sl_pipeline_is_native(paths, count), lacks = false;

	if (native)
		status = add_native(t, &report, paths, count, &lacks);
	for (unsigned i = 0; i < count && !status && !native; i++) {
		if (access(paths[i], F_OK) == 0) {
			sl_telemetry_add_path(t, paths[i], count > 1);
			continue;
		}
		sl_paths_failed(paths[i]);
		status = SL_EXIT_USAGE;
	}
	if (!status) {
		sl_telemetry_finish(t, NULL);
		status = write_merged(t, s->folder, s->json, lacks);
	}
	sl_telemetry_free(t);
	sl_report_free(&report);
	return status;
}

static const char about[] =
	"Write one telemetry sink in which the ranks of PATH share a session, for upstream's cross-rank analysis.";

static int run(struct sl_arguments *parsed)
{
	struct settings s = {0};
	int status = sl_arguments_parse(parsed, NULL, &s);

	if (status < 0 && !s.folder)
		status = sl_command_fail(SL_EXIT_USAGE, "merge needs -o DIR");
	if (status < 0)
		sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths, .reads = {s.folder}, .writes = {s.folder}});
	if (status < 0)
		status = merge(parsed->paths, parsed->path_count, &s);
	return status;
}

const struct sl_command sl_command_merge = {
	"merge", "one telemetry sink of all ranks, for upstream's cross-rank analysis", "merge PATH... -o DIR", about, table, run};
