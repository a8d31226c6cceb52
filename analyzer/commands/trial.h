/* SPDX-License-Identifier: MIT */
/*
 * Dry runs that a verb starts and looks at. The process that starts programs reads no trace: a child of it does, which may start
 * none. One thread.
 */
#pragma once

#include "analyzer/answer/largest.h"

#define SL_TRIAL_RANGES 2

/* What stormlog-run asks for. */
struct sl_trials {
	const char *output;
	const char *other;		    /* --against: another environment's Python; NULL: --largest */
	const char *range[SL_TRIAL_RANGES]; /* --largest: NAME=LOW..HIGH */
	unsigned ranges, cards;
	bool quiet;
	char **words, **command; /* of the launcher, up to its "--"; of the program */
	struct sl_largest_device card[SL_TRIAL_CARDS];
};

/* Exit statuses. */
int sl_trials_largest(struct sl_trials *trials);
int sl_trials_against(struct sl_trials *trials);

/* Runs argv with its output in the file `log`; a wait status.  SIGINT and SIGTERM of the run end this process too. */
int sl_trial_start(char *const *argv, const char *log);

/*
 * Runs the launcher on trial->card, and fills in the result.  name: of its folder.  A file beside that folder has its output.
 * rest: its further options, "--" and the command.
 */
void sl_trial_run(struct sl_trial *trial, const struct sl_trials *trials, const char *name, char *const *rest);
