/* SPDX-License-Identifier: MIT */
/* stormlog-analyze oom PATH: why the run ran out of memory, in two lines; nothing where it did not. stormlog-run prints it. */
#include <stdio.h>

#include "analyzer/base/door.h"
#include "analyzer/base/format.h"
#include "analyzer/base/json.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/native.h"
#include "analyzer/report/owners.h"

static const struct sl_option table[] = {
	SL_OPTION_RUN,
	{"--json", 0, NULL, "for programs (schemas/oom.schema.json); oom is null where it did not"},
	{0},
};
enum { RUN, JSON };

struct options {
	struct sl_pipeline_options pipeline;
	bool json;
};

static const char about[] = "Where and why the run ran out of memory, in two lines; prints nothing if it did not.";

static bool take(void *context, int option, const char *value)
{
	struct options *o = context;

	if (option == RUN)
		o->pipeline.run = value;
	else
		o->json = true;
	return true;
}

/* The first error that nobody got over; NULL: there was none. */
static const struct sl_oom *find(const struct sl_report *report, struct sl_process **process)
{
	const struct sl_process *at = NULL;
	const struct sl_oom *oom = sl_report_first_oom(report, &at);

	if (!oom || sl_oom_got_over(oom))
		return NULL;
	*process = &report->processes[at - report->processes];
	return oom;
}

static void print(const struct sl_report *report)
{
	struct sl_process *process;
	const struct sl_oom *oom = find(report, &process);
	const struct sl_account *account;
	char who[SL_FORMAT_BYTES], where[300];

	if (!oom)
		return;
	account = &process->accounts[oom - process->model->ooms.item];
	sl_owners_line(process, oom->stack, 2, where, sizeof(where));
	sl_door_print(stdout, "out of memory: %s asked for %s at ", sl_process_who(who, process), SL_SIZE(oom->asked_bytes));
	sl_door_put(stdout, SL_DOOR_LINE, where[0] ? where : "a place without a stack");
	putchar('\n');
	if (!account->cause_text)
		return;
	fputs("  ", stdout);
	sl_door_put(stdout, SL_DOOR_LINE, account->cause_text);
	putchar('\n');
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
	sl_json_known_uint(j, "device_free_bytes", oom->free_bytes);
	sl_json_known_uint(j, "device_total_bytes", oom->total_bytes);
	sl_json_string(j, "place", where[0] ? where : NULL);
	sl_json_string(j, "cause", account->cause_text);
	sl_json_string(j, "advice", account->advice);
	sl_json_end(j);
}

static bool print_json(const struct sl_report *report)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);
	struct sl_process *process;
	const struct sl_oom *oom = find(report, &process);

	sl_json_document(j, "stormlog.oom", 1);
	sl_json_string(j, "path", report->path);
	if (oom)
		put_oom(j, process, oom);
	else
		sl_json_null(j, "oom");
	return sl_json_finish(j);
}

static int run(struct sl_arguments *parsed)
{
	struct options options = {.pipeline.quiet = true};
	struct sl_report report;
	int status = sl_arguments_parse(parsed, take, &options);

	if (status < 0) {
		status = sl_native_open(&report, parsed->paths, parsed->path_count, &options.pipeline);
		if (status == SL_EXIT_FINE && options.json)
			status = print_json(&report) ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
		else if (status == SL_EXIT_FINE)
			print(&report);
		sl_report_free(&report);
	}
	return status;
}

const struct sl_command sl_command_oom = {"oom", "why a run ran out of memory, in two lines", "oom [options] PATH...", about, table,
					  run};
