/* SPDX-License-Identifier: MIT */
/* What dry runs showed, and in words what several show together. */
#pragma once

#include "analyzer/answer/answer.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/report.h"

#define SL_TRIAL_CARDS SL_ANSWER_GRID_ROWS
#define SL_TRIAL_NAMES 2

/* Whether the program fits, from worse to better. */
enum sl_trial_fit {
	SL_TRIAL_OTHER, /* it failed, and not for memory, or used no GPU */
	SL_TRIAL_FAILS,
	SL_TRIAL_MAY, /* it depends on what the card takes outside of the program */
	SL_TRIAL_FITS,
};
extern const char *const sl_trial_words[]; /* "no answer", "does not fit", "may fit", "fits" */

/* What one dry run showed.  Texts are not freed. */
struct sl_trial {
	long value[SL_TRIAL_NAMES];
	unsigned card; /* that it ran on */
	enum sl_trial_fit fit;
	bool asks_free;			   /* how much memory is free: on another card it may go on otherwise */
	struct sl_dry_need need;	   /* capacity 0: it recorded nothing */
	uint64_t peak;			   /* what the program held at most */
	uint64_t fullest_unix_ns;	   /* when its tensors were most; 0: unknown */
	const char *program, *card_name;   /* NULL: it recorded nothing */
	const char *why;		   /* the ground of a fit, or the reason of a failure; or NULL */
	const struct sl_answer_line *line; /* that failed; NULL: not known */
	char *traces;
	struct sl_trial *before; /* of a search; NULL: it is the first one */
};

/* What is told of one card, for one value of the other name. */
struct sl_largest_card {
	const struct sl_trial *fits; /* the largest value that fits; NULL: none */
	const struct sl_trial *may;  /* the largest one above it that may fit; NULL: none */
	const struct sl_trial *next; /* the smallest above those that does not fit; NULL: the range ends */
};

#define SL_LARGEST_ROWS 8

struct sl_largest {
	const char *program;
	const char *name, *other; /* other: the second name; NULL: there is one */
	const char *card_name[SL_TRIAL_CARDS];
	unsigned cards, rows, runs;
	bool any;		  /* a value fits a card */
	bool falls, rises, stays; /* memory, with a larger value; over two runs on one card each */
	long at[SL_LARGEST_ROWS]; /* values of the other name */
	struct sl_largest_card row[SL_LARGEST_ROWS][SL_TRIAL_CARDS];
};

/* --largest: the largest value of an option of the program that fits each card (doc/dry-run.md).  The caller frees it. */
struct sl_answers *sl_answer_largest(const struct sl_largest *largest);

/*
 * --against: which line asks for more than in another environment (doc/cases/fitted-before.md).  [0] is of the other environment,
 * [1] of this one.  `asked` are the runs on the card that the user named.  `ran` are the runs to compare: the same ones, or runs on
 * a card with room for both.  `report` has each of `ran` up to the moment of its most tensors.  The caller frees the result.
 */
struct sl_answers *sl_answer_against(struct sl_trial *const asked[2], struct sl_trial *const ran[2], struct sl_report report[2]);
