/* SPDX-License-Identifier: MIT */
/* stormlog-analyze oom PATH: why the run ran out of memory, in two lines; nothing where it did not. stormlog-run prints it. */
#include <stdio.h>

#include "analyzer/base/door.h"
#include "analyzer/base/format.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/native.h"
#include "analyzer/outputs/text_page.h"
#include "analyzer/report/owners.h"

static const struct sl_option table[] = {
	{"--run", 0, "ID|all", "which run of a folder with several (default: the newest)"},
	{0},
};

static const char about[] = "Where and why the run ran out of memory, in two lines; nothing where it did not.";

static bool take(void *context, int option, const char *value)
{
	struct sl_pipeline_options *options = context;

	(void)option;
	options->run = value;
	return true;
}

static void print(const struct sl_report *report)
{
	const struct sl_process *at = NULL;
	const struct sl_oom *oom = sl_report_first_oom(report, &at);
	struct sl_process *process;
	const struct sl_account *account;
	char who[SL_FORMAT_BYTES], size[SL_FORMAT_BYTES], where[300];

	if (!oom || oom->recovered == 1 || oom->less_bytes)
		return;
	process = &report->processes[at - report->processes];
	account = &process->accounts[oom->group];
	sl_owners_line(process, oom->python, oom->native, oom->caller, 2, where, sizeof(where));
	sl_door_print(stdout, "out of memory: %s asked for %s at ", sl_text_rank(who, process),
		      sl_format_size(size, oom->asked_bytes));
	sl_door_put(stdout, SL_DOOR_LINE, where[0] ? where : "a place without a stack");
	putchar('\n');
	if (!account->cause_text)
		return;
	fputs("  ", stdout);
	sl_door_put(stdout, SL_DOOR_LINE, account->cause_text);
	putchar('\n');
}

static int run(int argc, char **argv)
{
	struct sl_arguments parsed = {.usage = "oom [options] PATH...", .about = about, .table = table, .argc = argc, .argv = argv};
	struct sl_pipeline_options options = {.quiet = true};
	struct sl_report report;
	int status = sl_arguments_parse(&parsed, take, &options);

	if (status < 0) {
		status = sl_native_open(&report, parsed.paths, parsed.path_count, &options);
		if (status == SL_EXIT_FINE)
			print(&report);
		sl_report_free(&report);
	}
	sl_arguments_free(&parsed);
	return status;
}

const struct sl_command sl_command_oom = {"oom", "why a run ran out of memory, in two lines", run};
