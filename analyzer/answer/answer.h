/* SPDX-License-Identifier: MIT */
/*
 * What is said of a run, a snapshot or a log, before anyone lays it out: verdicts, each with its line, its reason and what to
 * change.  The files of this room make it from facts; faces (analyzer/faces/) turn it into bytes.  doc/answer.md has its rules.
 *
 * Texts are plain; a face escapes them.  Sizes in texts are made by sl_answer_size.  A document owns all that it has, and
 * sl_answers_free frees it.  One thread per document.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/arena.h"
#include "analyzer/base/vector.h"

/* Verdicts, worst first: of several the first one is open, then the one with most bytes, then the first in time. */
enum sl_word {
	SL_WORD_OUT_OF_MEMORY,
	SL_WORD_NEARLY,
	SL_WORD_DOES_NOT_FIT,
	SL_WORD_DOES_NOT_START,
	SL_WORD_LEAK,
	SL_WORD_GROWS,
	SL_WORD_HIDDEN,
	SL_WORD_UNEVEN,
	SL_WORD_HOST_MEMORY,
	SL_WORD_FAILED,
	SL_WORD_OK,
	SL_WORD_FITS,
	SL_WORD_MAY_FIT,
	SL_WORD_HELD,
	SL_WORD_RUNNING,
	SL_WORD_NOT_AN_ERROR,
	SL_WORD_NOTHING,
	SL_WORD_COUNT,
};
const char *sl_answer_word(enum sl_word word); /* "OUT OF MEMORY" */

enum sl_tone { SL_TONE_BAD, SL_TONE_WARNING, SL_TONE_GOOD };
enum sl_tone sl_answer_tone(enum sl_word word);

/* The labels of a verdict, in the order in which faces print them. */
enum sl_said_as {
	SL_LABEL_WHY,
	SL_LABEL_FIX,
	SL_LABEL_TRIED,
	SL_LABEL_NEED,
	SL_LABEL_FITS,
	SL_LABEL_LESS,
	SL_LABEL_ELSE,
	SL_LABEL_OPEN,
	SL_LABEL_NOTE,
	SL_LABEL_CARDS,
	SL_LABEL_RAN,
	SL_LABEL_HELD,
	SL_LABEL_COUNT,
};
const char *sl_answer_label(enum sl_said_as label); /* "why" */

/* A frame of the program's own, outermost first; NULL: not known. */
struct sl_answer_line {
	const char *file, *function; /* file NULL: the function names the place, as program+0xa74a */
	const char *path;	     /* absolute, for a link of the terminal; NULL */
	uint32_t line;
	const char *source; /* text of the line, without its indentation */
	const char *mark;   /* "asks 160 MiB", "made here", "likely keeps it" */
};
#define SL_ANSWER_FRAMES 4

struct sl_answer_row {
	uint64_t bytes;
	const char *name, *text; /* "activations", "2.50 train.py:79, 1.25 train.py:83"; text NULL: none */
	bool bare;		 /* no bar: it is not the program's own */
	bool fixed;		 /* it is never merged into `others` */
};

/* Rows add up to the total. All in the unit that suits the total. */
struct sl_answer_table {
	uint64_t total;
	const char *moment; /* "the card at the error" */
	SL_VECTOR(struct sl_answer_row) row;
	SL_VECTOR(uint64_t) course; /* of what was held, equal stretches of time; none: not drawn */
};

/* One figure for many ranks, devices or values, beside each other. */
#define SL_ANSWER_GRID_ROWS 16
struct sl_answer_grid {
	const char *corner; /* "GiB  rank" */
	bool counts;	    /* `bytes` have no unit */
	SL_VECTOR(const char *) head;
	struct {
		const char *name, *note;   /* note NULL: none */
		SL_VECTOR(uint64_t) bytes; /* SL_UNKNOWN: "-" */
	} row[SL_ANSWER_GRID_ROWS];
	unsigned rows;
};

struct sl_answer_figure {
	const char *name, *unit; /* static: "asked", "bytes" */
	double value;
	const char *rule; /* static: what the verdict's rule asks of it, "at least", "below", with `limit`; NULL: nothing */
	double limit;
};

struct sl_answer_next {
	/* paths: of the run, behind the command; a terminal and a page in a file tell them.  NULL: none, as for shows */
	const char *command, *paths, *shows;
};

struct sl_answer {
	enum sl_word word;
	const char *id;		      /* static: "oom.full" */
	const char *headline, *brief; /* brief: what an `also` line says behind its line; NULL: the headline */
	int process, device;	      /* index of the report's process; -1: of the run, of no device */
	bool several;		      /* it is about more processes than that one */
	uint64_t bytes, unix_ns;      /* 0: unknown */
	unsigned frames;
	struct sl_answer_line stack[SL_ANSWER_FRAMES];
	struct {
		const char *file;
		uint32_t first, marked;	      /* numbers of lines; the marked one is the verdict's */
		SL_VECTOR(const char *) line; /* with indentation; "": an empty one.  None: the file is not there, or was changed */
	} around;
	SL_VECTOR(const char *) label[SL_LABEL_COUNT]; /* sentences */
	SL_VECTOR(struct sl_answer_figure) figure;     /* of the headline and of `why`, so that no face parses text */
	struct sl_answer_table table;
	struct sl_answer_grid grid;
	SL_VECTOR(struct sl_answer_next) next;
	struct sl_answers *of;
};

struct sl_answers {
	const char *title, *right;	    /* of the first line; right: at its end */
	SL_VECTOR(const char *) under;	    /* lines below the title: a dry run, what is incomplete */
	SL_VECTOR(const char *) note;	    /* for --all */
	SL_VECTOR(struct sl_answer *) item; /* worst first, once report.c has sorted them */
	struct sl_arena arena;
};

struct sl_answers *sl_answers_new(void);
void sl_answers_free(struct sl_answers *answers); /* NULL is ignored */

/* A text of the document. */
char *sl_answers_text(struct sl_answers *answers, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sl_answers_under(struct sl_answers *answers, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sl_answers_note(struct sl_answers *answers, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a verdict; id is static. */
struct sl_answer *sl_answer_add(struct sl_answers *answers, enum sl_word word, const char *id);
void sl_answer_headline(struct sl_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sl_answer_brief(struct sl_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sl_answer_say(struct sl_answer *answer, enum sl_said_as label, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* All that a label says, behind `first`, which may be NULL; malloc'ed.  NULL: there is nothing. */
char *sl_answer_join(const struct sl_answer *answer, const char *first, enum sl_said_as label);
/* "\n" where the label has a text, so that the next one begins a line; else "". */
const char *sl_answer_break(const struct sl_answer *answer, enum sl_said_as label);
void sl_answer_figure(struct sl_answer *answer, const char *name, const char *unit, double value);
/* A figure by which the verdict was told. */
void sl_answer_judged(struct sl_answer *answer, const char *name, const char *unit, double value, const char *rule, double limit);
/* Appends a frame; texts are copied, NULL stays NULL.  False: SL_ANSWER_FRAMES are there. */
bool sl_answer_frame(struct sl_answer *answer, const struct sl_answer_line *line);
void sl_answer_row(struct sl_answer *answer, uint64_t bytes, const char *name, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same, but never merged. */
void sl_answer_row_fixed(struct sl_answer *answer, uint64_t bytes, const char *name, const char *text);
/* A row without a bar. */
void sl_answer_row_bare(struct sl_answer *answer, uint64_t bytes, const char *name, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void sl_answer_next_of(struct sl_answer *answer, const char *command, const char *paths, const char *shows);
void sl_answer_next(struct sl_answer *answer, const char *shows, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "2.5 GiB", "160 MiB", "4 MiB": three digits at most, no zeros behind the point, never above 999 of a unit. */
const char *sl_answer_size(char *out, uint64_t bytes);
#define SL_ANSWER_SIZE(bytes) sl_answer_size((char[48]){0}, bytes)

/* The unit of a table: its name, and its bytes in *bytes. */
const char *sl_answer_unit(uint64_t total, uint64_t *bytes);
/*
 * The numbers of a table as they are printed: out[0] is the total, then the rows, each in `digits` behind the point, so that the
 * rows add up to the total (largest remainder).  out: room for the rows and one.  A face that shows some rows as one adds their
 * numbers, so that each other row has the same number in all faces.
 */
struct sl_answer_number {
	uint64_t parts; /* of the last digit */
	int digits;
	char text[32];
};
void sl_answer_number_add(struct sl_answer_number *number, const struct sl_answer_number *other);
void sl_answer_numbers(const struct sl_answer_table *table, struct sl_answer_number *out);
