/* SPDX-License-Identifier: MIT */
/* followed PATH: for each line of stdin polls the folder once, and prints what it knows then as a line of JSON, with report.json's figures. */
#include <stdio.h>
#include <string.h>

#include "analyzer/base/json.h"
#include "analyzer/follow/follow.h"
#include "analyzer/outputs/output.h"

static void print(const struct sl_follow *follow)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);

	sl_json_array(j, NULL);
	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		const struct sl_followed *followed = sl_follow_process(follow, i);

		sl_json_object(j, NULL);
		sl_json_string(j, "trace", strrchr(followed->process.trace->name, '/') + 1);
		sl_json_int(j, "pid", followed->process.trace->header.pid);
		sl_json_string(j, "status", sl_trace_status(followed->process.trace));
		sl_json_uint(j, "events", followed->process.model->events);
		sl_json_uint(j, "unknown_frees", followed->process.model->unknown_frees);
		sl_json_bool(j, "ended", followed->ended);
		sl_json_bool(j, "removed", followed->removed);
		sl_json_uint(j, "late", followed->late);
		sl_json_uint(j, "late_ever", followed->late_ever);
		sl_json_uint(j, "replays", followed->replays);
		sl_json_figures(j, &followed->process);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_newline(j);
	sl_json_close(j);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sl_follow *follow = sl_follow_new();
	char line[64];
	bool added = false;

	while (argc > 1 && fgets(line, sizeof(line), stdin)) {
		added = added || sl_follow_add(follow, argv[1]);
		if (!strcmp(line, "node\n"))
			sl_follow_node(follow, 0);
		sl_follow_poll(follow);
		print(follow);
	}
	sl_follow_free(follow);
	return 0;
}
