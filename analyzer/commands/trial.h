/* SPDX-License-Identifier: MIT */
/*
 * Dry runs that a verb starts and looks at.  The process that reads traces starts no program: it asks another one, which reads
 * nothing, and names the run by numbers.  One thread.
 */
#pragma once

#include "analyzer/answer/largest.h"

struct sl_words {
	SL_VECTOR(char *) list;
};

/* What stormlog-run asks for. */
struct sl_trials {
	const char *output;
	const char *other; /* --against: another environment's Python; NULL: --largest */
	struct sl_trial_range {
		const char *text; /* --largest: NAME=LOW..HIGH */
		char name[40];
		long low, high;
	} range[SL_TRIAL_NAMES];
	unsigned ranges, cards;
	bool quiet;
	char **words, **command;	  /* of the launcher, up to its "--"; of the program */
	const char *card[SL_TRIAL_CARDS]; /* an id, or a file of a card */

	/* The name of a run's folder, malloc'ed. */
	char *(*name)(const struct sl_trials *trials, const struct sl_trial *trial);
	/* Adds the launcher's words behind --output, in the process that becomes the launcher. */
	void (*rest)(const struct sl_trials *trials, const struct sl_trial *trial, struct sl_words *words);
	int door; /* to the process that starts runs */
};

/* Exit statuses. */
int sl_trials_largest(struct sl_trials *trials);
int sl_trials_against(struct sl_trials *trials);

/* Before the first run: from here on this process starts no program, and writes no file. */
bool sl_trials_begin(struct sl_trials *trials);

/* Runs the launcher for the card and values, and tells what it showed.  A file beside its folder has its output.  It is there until the end. */
struct sl_trial *sl_trial_run(const struct sl_trials *trials, unsigned card, const long value[SL_TRIAL_NAMES]);

/* Says why the run, which is called that, has no answer; returns the exit status. */
int sl_trial_fail(const struct sl_trial *trial, const char *run);
