/* SPDX-License-Identifier: MIT */
#include "agent/run.h"

#include <errno.h>
#include <stdio.h>

static void line(const char *what, const char *value, const char *remark)
{
	fprintf(stderr, "  %-12s %s%s%s\n", what, value, *remark ? "   " : "", remark);
}

static bool check_agent(struct sl_run *run)
{
	if (!sl_run_find_library(run->library, sizeof(run->library))) {
		line("agent", "no libstormlog_preload.so beside stormlog-run or in ../lib", "");
		return false;
	}
	line("agent", run->library, SL_VERSION);
	return true;
}

static bool check_command(const struct sl_run *run)
{
	char path[4096], interpreter[4096];
	const char *why;
	int error;

	if (!run->command[0])
		return true;
	error = sl_run_find_command(run->command[0], path, sizeof(path));
	if (error) {
		line("command", run->command[0], error == ENOENT ? "not found" : "not executable");
		return false;
	}
	why = sl_run_target_hinders(path, interpreter, sizeof(interpreter));
	if (why) {
		line("command", why, "");
		return false;
	}
	line("command", path, strcmp(path, interpreter) ? interpreter : "");
	return true;
}

int sl_run_check(struct sl_run *run)
{
	bool agent = check_agent(run), command = check_command(run);

	line("trace", run->directory, "");
	return agent && command ? 0 : SL_RUN_FAILED;
}
