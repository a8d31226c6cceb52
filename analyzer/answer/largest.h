/* SPDX-License-Identifier: MIT */
/* stormlog-run --largest in words: the largest value of an option of the program that fits each card (doc/dry-run.md). */
#pragma once

#include "analyzer/answer/answer.h"

#define SL_TRIAL_CARDS 16

/* Whether the program fits, from worse to better. */
enum sl_trial_fit {
	SL_TRIAL_UNKNOWN,
	SL_TRIAL_OTHER, /* it failed, and not for memory */
	SL_TRIAL_FAILS,
	SL_TRIAL_MAY, /* it depends on what the card takes outside of the program */
	SL_TRIAL_FITS,
};

/* What one dry run showed. */
struct sl_trial {
	long value;
	unsigned card; /* that it ran on */
	enum sl_trial_fit fit;
	enum sl_trial_fit on[SL_TRIAL_CARDS]; /* by replay of its requests */
	bool asks;			      /* it asked the card how much memory is free: no replay tells of another card */
	uint64_t low, high, capacity;	      /* what it needs of its card */
	uint64_t held;			      /* what the program held at most */
	char program[80], card_name[80], traces[512];
	char why[300]; /* of a fit: what it rests on, ""; else what it failed of */
	char file[200], path[512], source[200], mark[80];
	uint32_t line; /* the line that failed; file "": not known */
};

/* A card of dry/cards.def, or a file of the user's with a card of his own, of which nothing is known before a run. */
struct sl_largest_device {
	const char *id;
	uint64_t memory, low, high; /* bytes; low, high: taken outside of the program; memory 0: not known */
};
struct sl_largest_device sl_largest_device(const char *id);
const char *sl_largest_device_of(uint64_t memory); /* the id of the first card of that size; NULL: none */
/* The id of the smallest card with so many bytes or more, else of the largest with fewer; NULL: none. */
const char *sl_largest_device_beside(uint64_t memory, bool more);

/* What is told of one card. */
struct sl_largest_card {
	const char *name;
	const struct sl_trial *most;  /* the largest value that fits; NULL: none */
	const struct sl_trial *maybe; /* the largest one above it that may fit; NULL: none */
	const struct sl_trial *next;  /* the smallest above those that does not fit; NULL: the range ends */
};

/* What is told for one value of the other name. */
struct sl_largest_row {
	long other;
	struct sl_largest_card card[SL_TRIAL_CARDS];
};

struct sl_largest {
	const char *program;
	const char *name, *other; /* other: the second name; NULL: there is one */
	bool any;		  /* a value fits a card */
	unsigned cards, runs;
	const char *steady;		      /* how memory goes with the value, where it does not rise; NULL: it rises */
	SL_VECTOR(struct sl_largest_row) row; /* one, or one for each value of the other name */
};

/* The caller frees it. */
struct sl_answers *sl_answer_largest(const struct sl_largest *largest);
