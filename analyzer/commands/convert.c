/* SPDX-License-Identifier: MIT */
/* stormlog-analyze convert: any telemetry file to V3 JSON lines. */
#include <unistd.h>

#include "analyzer/commands/commands.h"
#include "analyzer/base/paths.h"

struct conversion {
	struct sl_record_rules rules;
	struct sl_json *out;
	struct sl_arena arena;
	const char *file;
	bool all, file_session;
};

#define INTO struct conversion
static const struct sl_option table[] = {
	{"--session-id", 0, "ID", "the session of records without one", SL_TO_TEXT(rules.session_id)},
	{"--file-session", 0, NULL, "records without a session share one for each file (default: each has its own)",
	 SL_TO_FLAG(file_session)},
	{"--strict", 0, NULL, "refuse records of the oldest formats, which have no schema_version", SL_TO_FLAG(rules.strict)},
	{"--json", 0, NULL, "has no effect: the output is always one JSON object a line"},
	{0},
};

static void report(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	struct conversion *c = context;

	(void)loss;
	sl_paths_problem(file, line, reason);
	c->all = false;
}

static void convert_record(void *context, const struct sl_value *raw, uint32_t line)
{
	struct conversion *c = context;
	struct sl_record record;
	struct sl_record_error error;

	if (sl_record_normalize(&c->arena, raw, &c->rules, &record, &error)) {
		sl_record_write(c->out, NULL, &record);
		sl_json_newline(c->out);
	} else {
		report(c, SL_SOURCE_RECORD, c->file, line, error.reason);
	}
	sl_arena_reset(&c->arena);
}

static int convert(struct conversion *c, char **paths)
{
	for (char **path = paths; *path; path++) {
		if (access(*path, F_OK) != 0) {
			sl_paths_failed(*path);
			return SL_EXIT_USAGE;
		}
	}
	c->out = sl_json_new(stdout, SL_JSON_PYTHON);
	for (; *paths; paths++) {
		struct sl_source_reader reader = {convert_record, report, c};
		struct sl_arena names = {0};

		if (sl_pipeline_is_native(paths, 1)) {
			report(c, SL_SOURCE_FILE, *paths, 0, SL_NATIVE_NO_TELEMETRY);
			continue;
		}
		c->file = *paths;
		c->rules.collector = sl_source_form(c->file) == SL_SOURCE_CSV ? "legacy.csv" : NULL;
		if (c->file_session)
			c->rules.session_id = sl_session_id_of_file(&names, c->file);
		sl_source_read(c->file, &reader);
		sl_arena_free(&names);
	}
	sl_arena_free(&c->arena);
	if (!sl_json_close(c->out)) {
		perror("stormlog-analyze: writing the records");
		return SL_EXIT_UNSAVED;
	}
	return c->all ? SL_EXIT_FINE : SL_EXIT_UNREADABLE;
}

static const char about[] = "Write every telemetry record of the files as a V3 JSON line to stdout.";

static int run(struct sl_arguments *parsed)
{
	struct conversion c = {.all = true};
	int status = sl_arguments_parse(parsed, NULL, &c);

	if (status < 0)
		sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths});
	if (status < 0)
		status = convert(&c, parsed->paths);
	return status;
}

const struct sl_command sl_command_convert = {
	"convert", "telemetry of any version to V3 JSON lines", "convert [options] FILE...", about, table, run};
