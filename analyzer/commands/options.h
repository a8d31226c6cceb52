/* SPDX-License-Identifier: MIT */
/*
 * Options of a verb as a table: parsing, --help and completion come from it.  Options and paths may be mixed; after
 * "--" there are only paths.  One thread.
 *
 *	static const struct sl_option options[] = {{"--run", 0, "ID|all", "of a folder with several runs"}, {0}};
 *	struct sl_options o = {.usage = "check [options] PATH...", .table = options, .argc = argc, .argv = argv};
 *	for (int i; (i = sl_options_next(&o)) != SL_OPTION_END;) ...
 */
#ifndef ANALYZER_COMMANDS_OPTIONS_H
#define ANALYZER_COMMANDS_OPTIONS_H

#include <stdbool.h>

struct sl_option {
	const char *name;  /* "--run"; NULL ends the table */
	char letter;	   /* 0: none */
	const char *value; /* what to write for the value; NULL: a flag */
	const char *help;
};

/* Not an index into the table. */
enum {
	SL_OPTION_END = -1,
	SL_OPTION_PATH = -2,	  /* value is the path */
	SL_OPTION_SEPARATOR = -3, /* "--" */
	SL_OPTION_HELP = -4,	  /* printed on stdout */
	SL_OPTION_WRONG = -5,	  /* said on stderr */
};

struct sl_options {
	const char *usage, *about; /* "VERB [options] PATH..."; a paragraph for --help, or NULL */
	const struct sl_option *table;
	int argc;
	char **argv;
	/* state */
	int at;
	bool only_paths;
	const char *value;
};

/* Index into the table, or one of the above. */
int sl_options_next(struct sl_options *options);
void sl_options_usage(const struct sl_options *options, bool wrong);

#endif
