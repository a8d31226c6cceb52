/* SPDX-License-Identifier: MIT */
/*
 * Options of a verb as a table: parsing, --help and completion come from it.  Options and paths may be mixed; after
 * "--" there are only paths.  One thread.
 *
 *	static const struct sl_option table[] = {{"--run", 0, "ID|all", "of a folder with several runs"}, {0}};
 *	static int run(struct sl_arguments *parsed)
 *	{
 *		struct settings settings = {0};
 *		int status = sl_arguments_parse(parsed, take, &settings);
 *
 *		return status < 0 ? work(&settings, parsed->paths, parsed->path_count) : status;
 *	}
 *	const struct sl_command sl_command_check = {"check", "...", "check [options] PATH...", about, table, run};
 */
#ifndef ANALYZER_COMMANDS_ARGUMENTS_H
#define ANALYZER_COMMANDS_ARGUMENTS_H

#include <stdbool.h>

struct sl_option {
	const char *name;  /* "--run"; NULL ends the table */
	char letter;	   /* 0: none */
	const char *value; /* how --help writes the value; NULL: a flag */
	const char *help;
};

/* Which run, in the verbs that read one. */
#define SL_OPTION_RUN                                                                                                              \
	{                                                                                                                          \
		"--run", 0, "ID|all", "which run of a folder with several (default: the newest)"                                   \
	}

/* Results of sl_arguments_next that are not indexes into the table. */
enum {
	SL_ARGUMENT_END = -1,
	SL_ARGUMENT_PATH = -2,	    /* value is the path */
	SL_ARGUMENT_SEPARATOR = -3, /* "--" */
	SL_ARGUMENT_HELP = -4,	    /* printed on stdout */
	SL_ARGUMENT_WRONG = -5,	    /* said on stderr */
};

struct sl_command; /* commands.h */
struct sl_arguments {
	const struct sl_command *command;
	int argc;
	char **argv;
	/* after sl_arguments_parse: */
	char **paths;		    /* of argv, NULL at their end; sl_arguments_free */
	unsigned path_count, split; /* split: paths before "--", path_count where there is none */
	/* of sl_arguments_next: */
	int at;
	const char *symbols; /* of SL_OPTION_SYMBOLS, the same in every verb that has it; NULL: not given */
	bool only_paths;
	const char *value;
};

/*
 * Parses all of argv.  Each option is given to `take` with its index in the table and its value (NULL for a flag); take returns
 * whether the value is valid.  Returns an exit status after printing why, or -1: go on, with at least one path unless paths are
 * optional.
 */
typedef bool sl_arguments_take(void *context, int option, const char *value);
int sl_arguments_parse(struct sl_arguments *options, sl_arguments_take *take, void *context);
void sl_arguments_free(struct sl_arguments *options);

/* Reads a whole number from least to most, with nothing behind it. */
bool sl_arguments_number(const char *text, long least, long most, long *value);

/* Reads a number from least to most, with or without a fraction. */
bool sl_arguments_real(const char *text, double least, double most, double *value);

/* An index into the table, or one of the values above. */
int sl_arguments_next(struct sl_arguments *options);
void sl_arguments_usage(const struct sl_arguments *options, bool wrong);

#endif
