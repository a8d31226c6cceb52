/* SPDX-License-Identifier: MIT */
/*
 * stormlog-analyze oom PATH: why the run ran out of memory, in two lines, and how many errors there were besides; nothing where no
 * request failed. stormlog-run prints it.
 */
#include <stdio.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/json.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/native.h"
#include "analyzer/commands/begin.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/owners.h"

struct options {
	struct sl_pipeline_options pipeline;
	bool json;
};

#define INTO struct options
static const struct sl_option table[] = {
	SL_OPTION_RUN(pipeline.run),
	{"--json", 0, NULL, "for programs (schemas/oom.schema.json); oom is null where it did not", SL_TO_FLAG(json)},
	{0},
};

static const char about[] = "Where and why the run ran out of memory, in two lines. Prints no line if no allocation failed, and "
			    "then warns on\nstderr if ranks or parts of the trace are missing.";

/* The errors of a run: the first that nobody got over, else the first (NULL: none), and how many of each there are. */
struct errors {
	struct sl_process *process;
	const struct sl_oom *first;
	unsigned open, got_over;
};

static struct errors find(const struct sl_report *report)
{
	const struct sl_process *at = NULL;
	struct errors errors = {.first = sl_report_first_oom(report, &at)};

	if (errors.first)
		errors.process = &report->processes[at - report->processes];
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].model->ooms.count; k++)
			if (!report->processes[i].accounts[k].told_later)
				++*(sl_oom_got_over(&report->processes[i].model->ooms.item[k]) ? &errors.got_over : &errors.open);
	return errors;
}

static void print(const struct sl_report *report)
{
	struct errors errors = find(report);
	struct sl_process *process = errors.process;
	const char *cause;
	char where[300];

	if (!errors.first)
		return;
	cause = process->accounts[errors.first - process->model->ooms.item].cause_text;
	sl_owners_line(process, errors.first->stack, 2, where, sizeof(where));
	sl_escape_print(stdout, "out of memory%s: %s asked for %s at ", errors.open ? "" : " and got over it", SL_WHO(process),
			SL_SIZE(errors.first->asked_bytes));
	sl_escape_put(stdout, SL_ESCAPE_LINE, where[0] ? where : "a place without a stack");
	putchar('\n');
	if (cause) {
		fputs("  ", stdout);
		sl_escape_put(stdout, SL_ESCAPE_LINE, cause);
		putchar('\n');
	}
	if (errors.open > 1)
		sl_escape_print(stdout, "  and %u more\n", errors.open - 1);
	if (errors.got_over > !errors.open)
		sl_escape_print(stdout, "  and %u that the program got over\n", errors.got_over - !errors.open);
}

struct doubt {
	char text[400]; /* the first of what is not here */
	unsigned count;
};

static void keep_first(void *context, bool damaged, const char *subject, const char *message)
{
	struct doubt *doubt = context;

	(void)damaged;
	if (!strcmp(message, SL_ABSENT_NEWER)) /* which every verb says */
		return;
	if (!doubt->count++)
		snprintf(doubt->text, sizeof(doubt->text), "%s: %s", subject, message);
}

/* No call failed, but the run is incomplete, so silence would be no answer. */
static void say_doubt(const struct sl_report *report)
{
	struct doubt doubt = {0};

	sl_missing_tell(report, keep_first, &doubt);
	if (doubt.count == 1)
		sl_escape_print(stderr, "stormlog-analyze: no allocation failed, but the run is incomplete: %s\n", doubt.text);
	else if (doubt.count)
		sl_escape_print(stderr,
				"stormlog-analyze: no allocation failed, but the run is incomplete: %s; and %u more like it\n",
				doubt.text, doubt.count - 1);
}

static void put_oom(struct sl_json *j, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_account *account = &process->accounts[oom - process->model->ooms.item];
	char where[300];

	sl_owners_line(process, oom->stack, 2, where, sizeof(where));
	sl_json_object(j, "oom");
	sl_json_string(j, "session_id", process->session_id);
	sl_json_known(j, "rank", process->trace->header.rank);
	sl_json_known(j, "device", oom->device);
	sl_json_uint(j, "timestamp_ns", sl_process_unix(process, oom->time_ns));
	sl_json_uint(j, "requested_bytes", oom->asked_bytes);
	sl_json_uint(j, "held_bytes", oom->live_bytes);
	sl_json_known_uint(j, "device_free_bytes", sl_account_measured(account, oom->free_bytes));
	sl_json_known_uint(j, "device_total_bytes", sl_account_measured(account, oom->total_bytes));
	sl_json_string(j, "place", where[0] ? where : NULL);
	sl_json_string(j, "cause", account->cause_text);
	sl_json_string(j, "advice", account->advice);
	sl_json_end(j);
}

static bool print_json(const struct sl_report *report)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);
	struct errors errors = find(report);

	sl_json_document(j, "stormlog.oom", 1);
	sl_json_string(j, "path", report->path);
	if (errors.open)
		put_oom(j, errors.process, errors.first);
	else
		sl_json_null(j, "oom");
	sl_json_uint(j, "errors", errors.open);
	sl_json_uint(j, "got_over", errors.got_over);
	return sl_json_finish(j);
}

static int run(struct sl_arguments *parsed)
{
	struct options options = {.pipeline.quiet = true};
	struct sl_report report;
	int status = sl_arguments_parse(parsed, NULL, &options);

	if (status < 0) {
		sl_begin(&(struct sl_verb_files){.inputs = parsed->paths});
		status = sl_native_open(&report, parsed->paths, parsed->path_count, &options.pipeline);
		if (status == SL_EXIT_FINE && options.json)
			status = print_json(&report) ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
		else if (status == SL_EXIT_FINE)
			print(&report);
		if (status == SL_EXIT_FINE && !find(&report).first)
			say_doubt(&report);
		sl_report_free(&report);
	}
	return status;
}

const struct sl_command sl_command_oom = {"oom", "why a run ran out of memory, in two lines", "oom [options] PATH...", about, table,
					  run};
