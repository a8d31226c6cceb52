/* SPDX-License-Identifier: MIT */
/*
 * The verbs of stormlog-analyze.  argv[0] is the verb.  Exit statuses, as in the man page: 0 fine; 1 a limit is exceeded; 2
 * usage, a path that does not exist, or a place that may not be replaced; 3 nothing readable (convert, validate: something was
 * invalid); 4 the result could not be written.
 */
#ifndef ANALYZER_COMMANDS_COMMANDS_H
#define ANALYZER_COMMANDS_COMMANDS_H

enum { SL_EXIT_FINE = 0, SL_EXIT_LIMIT = 1, SL_EXIT_USAGE = 2, SL_EXIT_UNREADABLE = 3, SL_EXIT_UNSAVED = 4 };

struct sl_command {
	const char *name;
	const char *summary; /* one line for --help */
	int (*run)(int argc, char **argv);
};

extern const struct sl_command sl_command_check;
extern const struct sl_command sl_command_collect;
extern const struct sl_command sl_command_convert;
extern const struct sl_command sl_command_diagnose;
extern const struct sl_command sl_command_diff;
extern const struct sl_command sl_command_dump;
extern const struct sl_command sl_command_export;
extern const struct sl_command sl_command_fit;
extern const struct sl_command sl_command_flame;
extern const struct sl_command sl_command_history;
extern const struct sl_command sl_command_info;
extern const struct sl_command sl_command_oom;
extern const struct sl_command sl_command_merge;
extern const struct sl_command sl_command_monitor;
extern const struct sl_command sl_command_pack;
extern const struct sl_command sl_command_push;
extern const struct sl_command sl_command_ranks;
extern const struct sl_command sl_command_report;
extern const struct sl_command sl_command_runs;
extern const struct sl_command sl_command_summarize;
extern const struct sl_command sl_command_table;
extern const struct sl_command sl_command_timeline;
extern const struct sl_command sl_command_track;
extern const struct sl_command sl_command_tree;
extern const struct sl_command sl_command_validate;
extern const struct sl_command sl_command_watch;

#endif
