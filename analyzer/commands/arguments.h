/* SPDX-License-Identifier: MIT */
/*
 * The options of a verb are a table, from which parsing, --help and completion are made.  Options and paths may be mixed; after
 * "--" there are only paths.  One thread.
 *
 * 	struct settings {
 * 		const char *run;
 * 	};
 * 	#define INTO struct settings
 * 	static const struct sl_option table[] = {{"--run", 0, "ID|all", "of a folder with several", SL_TO_TEXT(run)}, {0}};
 * 	static int run(struct sl_arguments *parsed)
 * 	{
 * 		struct settings settings = {0};
 * 		int status = sl_arguments_parse(parsed, NULL, &settings);
 *
 * 		return status < 0 ? work(&settings, parsed->paths, parsed->path_count) : status;
 * 	}
 * 	const struct sl_command sl_command_check = {"check", "...", "check [options] PATH...", about, table, run};
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_option {
	const char *name;  /* "--run"; NULL ends the table */
	char letter;	   /* 0: none */
	const char *value; /* how --help writes the value; NULL: a flag */
	const char *help;
	/* How the value is read and into which member of the settings: a macro below.  Without one the value goes to `take`. */
	enum {
		SL_READ_NONE,
		SL_READ_TEXT,
		SL_READ_FLAG,
		SL_READ_REAL,
		SL_READ_LONG,
		SL_READ_COUNT,
		SL_READ_SIZE,
		SL_READ_WORD
	} read;
	size_t into;
	double least, most; /* range of a number */
};

/* A member of INTO, the type of the settings, which the table's file defines.  The compiler checks the member's type. */
#define SL_INTO(as, member)		 offsetof(INTO, member) + 0 * sizeof(_Generic(&((INTO *)0)->member, as * : 0))
#define SL_TO_TEXT(member)		 SL_READ_TEXT, SL_INTO(const char *, member)
#define SL_TO_FLAG(member)		 SL_READ_FLAG, SL_INTO(bool, member)
#define SL_TO_REAL(member, least, most)	 SL_READ_REAL, SL_INTO(double, member), least, most
#define SL_TO_LONG(member, least, most)	 SL_READ_LONG, SL_INTO(long, member), least, most
#define SL_TO_COUNT(member, least, most) SL_READ_COUNT, SL_INTO(unsigned, member), least, most
#define SL_TO_SIZE(member)		 SL_READ_SIZE, SL_INTO(uint64_t, member) /* 512M */
#define SL_TO_WORD(member)		 SL_READ_WORD, SL_INTO(unsigned, member) /* which of the words of `value`: csv|json */

/* The row of verbs that read one run. */
#define SL_OPTION_RUN(member)                                                                                                      \
	{                                                                                                                          \
		"--run", 0, "ID|all", "which run of a folder with several (default: the newest)", SL_TO_TEXT(member)               \
	}

/* The row of verbs that name functions; sl_arguments_parse takes its value. */
#define SL_OPTION_SYMBOLS                                                                                                          \
	{                                                                                                                          \
		"--symbols", 0, "DIR",                                                                                             \
			"look there too for libraries, programs and debug files of the recorded build (default: where they were)"  \
	}

struct sl_command; /* commands.h */
struct sl_arguments {
	const struct sl_command *command;
	int argc;
	char **argv;
	/* after sl_arguments_parse: */
	char **paths;		    /* from argv, ended by NULL; freed by sl_arguments_free */
	unsigned path_count, split; /* split: paths before "--", path_count where there is none */
	uint64_t given;		    /* bit i: the option in row i of the table was given */
	const char *symbols;	    /* value of SL_OPTION_SYMBOLS; NULL: not given */
	/* used during parsing: */
	int at;
	bool only_paths;
	const char *value;
};

/*
 * Parses all of argv into `context`, the settings that the table's rows name.  An option whose row names no member is given to
 * `take` with its index in the table and its value (NULL for a flag); take returns whether the value is valid, and may be NULL
 * where such options mean nothing.  Returns an exit status after printing why, or -1: go on, with as many paths as the verb
 * wants.
 */
typedef bool sl_arguments_take(void *context, int option, const char *value);
int sl_arguments_parse(struct sl_arguments *options, sl_arguments_take *take, void *context);
void sl_arguments_free(struct sl_arguments *options);

/* Reads a value as the row says, into its member of `context`.  False: not a valid one. */
bool sl_arguments_read(const struct sl_option *o, const char *value, void *context);

/* Reads a whole number from least to most, with nothing behind it. */
bool sl_arguments_number(const char *text, long least, long most, long *value);

void sl_arguments_usage(const struct sl_arguments *options, bool wrong);
