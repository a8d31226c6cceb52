/* SPDX-License-Identifier: MIT */
/* stormlog-run --largest in words: the largest value of an option of the program that fits each card (doc/dry-run.md). */
#pragma once

#include "analyzer/answer/answer.h"
#include "analyzer/report/dry.h"

#define SL_TRIAL_CARDS SL_ANSWER_GRID_ROWS
#define SL_TRIAL_NAMES 2

/* Whether the program fits, from worse to better. */
enum sl_trial_fit {
	SL_TRIAL_UNKNOWN, /* by replay: of a run it is known */
	SL_TRIAL_OTHER,	  /* it failed, and not for memory, or used no GPU */
	SL_TRIAL_FAILS,
	SL_TRIAL_MAY, /* it depends on what the card takes outside of the program */
	SL_TRIAL_FITS,
};

/* What one dry run showed.  Texts are of `said`. */
struct sl_trial {
	long value[SL_TRIAL_NAMES];
	unsigned card; /* that it ran on */
	enum sl_trial_fit fit;
	enum sl_trial_fit on[SL_TRIAL_CARDS]; /* by replay of its requests */
	bool asks;			      /* it asked the card how much memory is free: no replay tells of another card */
	struct sl_dry_need need;
	uint64_t held;			 /* what the program held at most */
	const char *program, *card_name; /* NULL: it recorded nothing */
	const char *why;		 /* the ground of a fit, or the reason of a failure; or NULL */
	struct sl_answer_line line;	 /* that failed; file NULL: not known */
	char *traces;			 /* malloc'ed */
	struct sl_answers *said[2];	 /* of its recording, and of its output */
};

/* A card of dry/cards.def, or a file of the user's with a card of his own, of which nothing is known before a run. */
struct sl_largest_device {
	const char *id;
	uint64_t memory, low, high; /* bytes; low, high: taken outside of the program; memory 0: not known */
};
struct sl_largest_device sl_largest_device(const char *id);
const char *sl_largest_device_of(uint64_t memory); /* the id of the first card of that size; NULL: none */
/* more: the id of the smallest card with so many bytes or more.  Else: of the largest with fewer.  NULL: no card has. */
const char *sl_largest_device_beside(uint64_t memory, bool more);

/* What is told of one card, for one value of the other name. */
struct sl_largest_card {
	const struct sl_trial *most;  /* the largest value that fits; NULL: none */
	const struct sl_trial *maybe; /* the largest one above it that may fit; NULL: none */
	const struct sl_trial *next;  /* the smallest above those that does not fit; NULL: the range ends */
};

#define SL_LARGEST_ROWS 8

struct sl_largest {
	const char *program;
	const char *name, *other; /* other: the second name; NULL: there is one */
	const char *card_name[SL_TRIAL_CARDS];
	unsigned cards, rows, runs;
	bool any;		  /* a value fits a card */
	const char *course;	  /* how memory goes with the value, where it does not rise; NULL: it rises */
	long at[SL_LARGEST_ROWS]; /* values of the other name */
	struct sl_largest_card row[SL_LARGEST_ROWS][SL_TRIAL_CARDS];
};

/* The caller frees it. */
struct sl_answers *sl_answer_largest(const struct sl_largest *largest);
