/* SPDX-License-Identifier: MIT */
/*
 * The options of a program or a verb are a table, from which parsing, --help and completion are made.  Each has the forms
 * --name VALUE, --name=VALUE, -nVALUE and -n VALUE, and is written in full unless `shortens`.  Options and paths may be mixed.
 * After "--" there are only paths.  One thread.
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
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sl_option {
	const char *name;  /* "--run"; "--": of no option; NULL ends the table */
	char letter;	   /* 0: none */
	const char *value; /* how --help writes the value; NULL: a flag; "[=CARD]": only behind "=" */
	const char *help;
	/* How the value is read and into which member of the settings: a macro below.  Without one the value goes to `take`. */
	enum {
		SL_READ_NONE,
		SL_READ_TEXT,
		SL_READ_TEXTS,
		SL_READ_FLAG,
		SL_READ_REAL,
		SL_READ_LONG,
		SL_READ_COUNT,
		SL_READ_SIZE,
		SL_READ_WORD,
		SL_READ_FOLDER, /* a folder that exists, into sl_arguments.symbols */
		SL_READ_VERSION /* none: the version is printed */
	} read;
	size_t into;
	double min, max; /* range of a number; min of a size too */
};

/* The values of an option that may be repeated.  The owner frees .item, not the texts, which are of argv. */
struct sl_texts {
	const char **item;
	size_t count, capacity;
};

/* A member of INTO, the type of the settings, which the table's file defines.  The compiler checks the member's type. */
#define SL_INTO(as, member)	      offsetof(INTO, member) + 0 * sizeof(_Generic(&((INTO *)0)->member, as * : 0))
#define SL_TO_TEXT(member)	      SL_READ_TEXT, SL_INTO(const char *, member)
#define SL_TO_TEXTS(member)	      SL_READ_TEXTS, SL_INTO(struct sl_texts, member)
#define SL_TO_FLAG(member)	      SL_READ_FLAG, SL_INTO(bool, member)
#define SL_TO_REAL(member, min, max)  SL_READ_REAL, SL_INTO(double, member), min, max
#define SL_TO_LONG(member, min, max)  SL_READ_LONG, SL_INTO(long, member), min, max
#define SL_TO_COUNT(member, min, max) SL_READ_COUNT, SL_INTO(unsigned, member), min, max
#define SL_TO_SIZE(member)	      SL_READ_SIZE, SL_INTO(uint64_t, member) /* 512M */
#define SL_TO_WORD(member)	      SL_READ_WORD, SL_INTO(unsigned, member) /* which of the words of `value`: csv|json */

/* The last rows of a program.  Each table has --help, which a verb does not list. */
/* clang-format off */
#define SL_OPTION_HELP \
	{"--help", 0, NULL, "print this and exit"}, \
	{"--version", 0, NULL, "print the version and exit", SL_READ_VERSION}
/* clang-format on */

/* WORDS: the first path begins a command of words, none of which is an option of the table. */
enum sl_paths { SL_PATHS_NEEDED, SL_PATHS_OPTIONAL, SL_PATHS_NONE, SL_PATHS_WORDS };

struct sl_arguments {
	const char *program, *usage, *about; /* --help: "usage: PROGRAM USAGE", paragraphs (NULL: none) and the table */
	const struct sl_option *table;
	enum sl_paths wants;
	int argc;
	char **argv; /* [0] is not read */
	/*
	 * Prints why the word at `at` is refused: the option of this row (NULL: there is none) has an invalid value (NULL: none).
	 */
	void (*refuse)(const struct sl_arguments *parsed, const struct sl_option *row, const char *value);
	const char *verb; /* for `refuse` */
	bool shortens;	  /* as getopt_long: a name may be cut where it stays the only one, and letters of flags may share a word */
	/* after sl_arguments_parse: */
	char **paths;		    /* from argv, ended by NULL; freed by sl_arguments_free */
	unsigned path_count, split; /* split: paths before "--", path_count where there is none */
	uint64_t given;		    /* bit i: the option in row i of the table was given */
	const char *symbols;	    /* value of a row of SL_READ_FOLDER; NULL: not given */
	/* used during parsing: */
	int at;
	bool only_paths;
};

/*
 * Parses all of argv into `context`, the settings that the table's rows name.  `take` gets each option whose row names no member:
 * its index in the table, and its value (NULL for a flag).  It returns whether the value is valid.  It may be NULL where all rows
 * name members.  Returns -1 to go on, with as many paths as are wanted, or an exit status: 0 after --help or --version on stdout,
 * 2 after printing on stderr what is wrong, 3 without memory.
 */
typedef bool sl_arguments_take(void *context, int option, const char *value);
int sl_arguments_parse(struct sl_arguments *options, sl_arguments_take *take, void *context);
void sl_arguments_free(struct sl_arguments *options);

/* Reads a value as the row says, into its member of `context`.  False: not a valid one. */
bool sl_arguments_read(const struct sl_option *o, const char *value, void *context);

/* Reads a whole number from min to max, with nothing behind it. */
bool sl_arguments_number(const char *text, long min, long max, long *value);

void sl_arguments_usage(const struct sl_arguments *options, bool wrong);
/* Prints words up to column 80: the line stands at `at`, further ones begin at `column`. */
void sl_arguments_wrap(FILE *out, size_t at, size_t column, const char *words);
