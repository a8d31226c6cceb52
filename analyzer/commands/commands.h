/* SPDX-License-Identifier: MIT */
/*
 * The verbs of stormlog-analyze.  argv[0] is the verb.  Exit statuses, as in the man page: 0 fine; 1 a limit is exceeded; 2
 * usage, a path that does not exist, or a place that may not be replaced; 3 nothing readable (convert, validate: something was
 * invalid); 4 the result could not be written.
 */
#pragma once

enum { SL_EXIT_FINE = 0, SL_EXIT_LIMIT = 1, SL_EXIT_USAGE = 2, SL_EXIT_UNREADABLE = 3, SL_EXIT_UNSAVED = 4 };

/* Prints a sentence on stderr, without a line break in `format`, and returns the status. */
int sl_command_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct sl_option; /* arguments.h */
struct sl_arguments;

struct sl_command {
	const char *name;
	const char *summary; /* one line for --help */
	/* usage: "VERB [options] PATH..."; about: a paragraph for the verb's own --help, or NULL */
	const char *usage, *about;
	const struct sl_option *table;
	int (*run)(struct sl_arguments *arguments); /* `arguments` are not parsed yet; returns an exit status */
	enum { SL_PATHS_NEEDED, SL_PATHS_OPTIONAL, SL_PATHS_NONE } paths;
};

/* clang-format off */
/* Every verb, in the order of the help: the six that --help shows, those of `help all`, and verbs that it does not list. */
#define SL_COMMANDS(VERB) \
	VERB(report) VERB(tree) VERB(table) VERB(diff) VERB(check) VERB(export) \
	VERB(fit) VERB(monitor) VERB(watch) VERB(diagnose) VERB(collect) VERB(pack) VERB(push) VERB(convert) VERB(validate) \
	VERB(merge) VERB(summarize) VERB(runs) \
	VERB(flame) VERB(dump)
/* clang-format on */

#define SL_COMMAND(name) extern const struct sl_command sl_command_##name;
SL_COMMANDS(SL_COMMAND)
#undef SL_COMMAND
