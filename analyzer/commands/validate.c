/* SPDX-License-Identifier: MIT */
/* stormlog-analyze validate: prints faults of telemetry files; writes no file. */
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/commands/commands.h"
#include "analyzer/base/paths.h"

#define TOLD_MAX 12000 /* most bytes of problems in JSON; further ones are only counted */

struct validation {
	struct sl_record_rules rules;
	struct sl_arena arena;
	const char *file;
	struct sl_json *json; /* --json: in memory; NULL: prints sentences */
	uint64_t left;
	bool valid;
};

#define INTO struct validation
static const struct sl_option table[] = {
	{"--strict", 0, NULL, "records of the oldest formats, which have no schema_version, are wrong too",
	 SL_TO_FLAG(rules.strict)},
	{"--json", 0, NULL, "print the faults as one JSON object (schemas/validate.schema.json)"},
	{0},
};

static void report(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	struct validation *v = context;
	size_t size;

	(void)loss;
	v->valid = false;
	if (!v->json) {
		sl_paths_problem(file, line, reason);
	} else if (sl_json_text(v->json, &size), size > TOLD_MAX) {
		v->left++;
	} else {
		sl_json_object(v->json, NULL);
		sl_json_string(v->json, "file", file);
		sl_json_known(v->json, "line", line ? (int64_t)line : -1);
		sl_json_string(v->json, "reason", reason);
		sl_json_end(v->json);
	}
}

/* A record with a version must be complete; an older one must be convertible. */
static void check_record(void *context, const struct sl_value *raw, uint32_t line)
{
	struct validation *v = context;
	struct sl_record record;
	struct sl_record_error error;
	bool ok = sl_value_get(raw, "schema_version") ? sl_record_validate(raw, &error)
						      : sl_record_normalize(&v->arena, raw, &v->rules, &record, &error);

	if (!ok)
		report(v, SL_SOURCE_RECORD, v->file, line, error.reason);
	sl_arena_reset(&v->arena);
}

/* A sink, a bundle or a folder of them: loading reports what is wrong with each part, records included. */
static void check_folder(struct validation *v, const char *path)
{
	struct sl_telemetry *t = sl_telemetry_new();

	if (sl_telemetry_add_path(t, path, true) == 0 && t->problems.count == 0)
		report(v, SL_SOURCE_FILE, path, 0,
		       sl_pipeline_is_native(&(char *){(char *)path}, 1) ? SL_NATIVE_NO_TELEMETRY : "no telemetry here");
	for (size_t i = 0; i < t->problems.count; i++)
		report(v, t->problems.item[i].loss, t->problems.item[i].file, t->problems.item[i].line, t->problems.item[i].reason);
	sl_telemetry_free(t);
	static const char *const words[] = {
		[SL_ROLLUPS_STALE] = "rollups do not belong to the manifest", [SL_ROLLUPS_BROKEN] = "not a rollup file"};
	enum sl_rollups_state state = sl_sink_rollups_state(path);

	if (state == SL_ROLLUPS_STALE || state == SL_ROLLUPS_BROKEN)
		report(v, SL_SOURCE_FILE, sl_arena_printf(&v->arena, "%s/rollups.json", path), 0, words[state]);
	sl_arena_reset(&v->arena);
}

static void check_path(struct validation *v, const char *path)
{
	const char *name = sl_paths_name(path);
	struct sl_source_reader reader = {check_record, report, v};
	struct stat status;

	v->file = path;
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		check_folder(v, path);
	else if (strcmp(name, "manifest.json") == 0)
		check_folder(v, name > path ? sl_arena_strndup(&v->arena, path, (size_t)(name - 1 - path)) : ".");
	else if (sl_pipeline_is_native(&(char *){(char *)path}, 1))
		report(v, SL_SOURCE_FILE, path, 0, SL_NATIVE_NO_TELEMETRY);
	else
		sl_source_read(path, &reader);
}

static struct sl_json *begin_json(void)
{
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);

	sl_json_document(j, "stormlog.validate", 1);
	sl_json_array(j, "problems");
	return j;
}

static void print_json(const struct validation *v)
{
	size_t size;
	const char *text;

	sl_json_end(v->json);
	sl_json_uint(v->json, "left_out", v->left);
	sl_json_bool(v->json, "valid", v->valid);
	sl_json_end(v->json);
	sl_json_newline(v->json);
	text = sl_json_text(v->json, &size);
	fwrite(text, 1, size, stdout);
}

/* --json */
static bool take(void *context, int option, const char *value)
{
	struct validation *v = context;

	(void)option;
	(void)value;
	if (!v->json)
		v->json = begin_json();
	return true;
}

static int validate(struct validation *v, char **paths)
{
	for (; *paths; paths++) {
		if (access(*paths, F_OK) != 0) {
			sl_paths_failed(*paths);
			return SL_EXIT_USAGE;
		}
		check_path(v, *paths);
	}
	return v->valid ? SL_EXIT_FINE : SL_EXIT_UNREADABLE;
}

static int answer(struct validation *v, char **paths)
{
	int status = validate(v, paths);

	if (v->json && status != SL_EXIT_USAGE)
		print_json(v);
	return status;
}

static const char about[] = "Check telemetry files, sinks and bundles, one line for each thing that is wrong.";

static int run(struct sl_arguments *parsed)
{
	struct validation v = {.valid = true};
	int status = sl_arguments_parse(parsed, take, &v);

	if (status < 0)
		sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths});
	if (status < 0)
		status = answer(&v, parsed->paths);
	if (v.json)
		sl_json_close(v.json);
	sl_arena_free(&v.arena);
	return status;
}

const struct sl_command sl_command_validate = {
	"validate", "check telemetry files, sinks and bundles", "validate [options] PATH...", about, table, run};
