/* SPDX-License-Identifier: MIT */
/* stormlog-analyze merge: one sink in which all ranks share a session. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../commands.h"
#include "../drive.h"
#include "../sessions.h"
#include "sink.h"
#include "telemetry.h"

static const char usage[] =
	"usage: stormlog-analyze merge PATH... -o DIR\n"
	"\n"
	"Write one telemetry sink in which the ranks of PATH share a session, for upstream's cross-rank analysis.\n"
	"DIR must not exist yet, or be empty.\n";

static int write_merged(struct sl_telemetry *t, const char *folder)
{
	char reason[160];
	const struct sl_session *merged = sl_telemetry_merge_ranks(t, reason, sizeof(reason));

	for (size_t i = 0; i < t->problem_count; i++)
		fprintf(stderr, "%s:%u: %s\n", t->problems[i].file, t->problems[i].line, t->problems[i].reason);
	if (!merged) {
		fprintf(stderr, "stormlog-analyze: cannot merge: %s\n", reason);
		return SL_EXIT_UNREADABLE;
	}
	if (sl_sink_write(folder, &merged, 1, NULL))
		return SL_EXIT_FINE;
	fprintf(stderr, "stormlog-analyze: cannot write %s: %s\n", folder, strerror(errno));
	return SL_EXIT_UNREADABLE;
}

/* Traces of a run: a session for each process. */
static int add_native(struct sl_telemetry *t, struct sl_report *report, char **paths, unsigned count)
{
	const struct sl_drive_options options = {0};
	struct sl_session *sessions;

	if (sl_drive(report, paths, count, &options) != SL_DRIVE_FINE) {
		for (size_t i = 0; i < report->warnings.count; i++)
			fprintf(stderr, "stormlog-analyze: %s\n", report->warnings.item[i]);
		fprintf(stderr, "stormlog-analyze: nothing of %s can be read\n", report->path);
		return SL_EXIT_UNREADABLE;
	}
	sessions = sl_sessions_all(report, &t->arena);
	for (unsigned i = 0; i < report->process_count; i++)
		sl_telemetry_add_session(t, &sessions[i]);
	free(sessions);
	return SL_EXIT_FINE;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {{"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *folder = NULL;

	optind = 0;
	for (int o; (o = getopt_long(argc, argv, "o:h", options, NULL)) != -1;) {
		if (o == 'o') {
			folder = optarg;
			continue;
		}
		fputs(usage, o == 'h' ? stdout : stderr);
		return o == 'h' ? SL_EXIT_FINE : SL_EXIT_USAGE;
	}
	if (!folder || optind == argc) {
		fputs(usage, stderr);
		return SL_EXIT_USAGE;
	}
	struct sl_telemetry *t = sl_telemetry_new();
	struct sl_report report = {0};
	int status = SL_EXIT_FINE;
	bool native = sl_drive_is_native(&argv[optind], (unsigned)(argc - optind));

	if (native)
		status = add_native(t, &report, &argv[optind], (unsigned)(argc - optind));
	for (int i = optind; i < argc && !status && !native; i++) {
		if (access(argv[i], F_OK) == 0) {
			sl_telemetry_add_path(t, argv[i], argc - optind > 1);
			continue;
		}
		fprintf(stderr, "stormlog-analyze: no such file: %s\n", argv[i]);
		status = SL_EXIT_USAGE;
	}
	if (!status) {
		sl_telemetry_finish(t, NULL);
		status = write_merged(t, folder);
	}
	sl_telemetry_free(t);
	sl_report_free(&report);
	return status;
}

const struct sl_command sl_command_merge = {"merge", "one telemetry sink of all ranks, for upstream's cross-rank analysis", run};
