/* SPDX-License-Identifier: MIT */
/*
 * A dry run that a verb starts and looks at. The process that starts programs reads no trace: a child of it does, which may start
 * none. One thread.
 */
#pragma once

#include "analyzer/answer/largest.h"

/* The program's command: what follows the first "--" of the paths; NULL: no word does. */
char **sl_trial_command(char **paths);

/* Runs argv with its output in the file `log`; a wait status.  SIGINT and SIGTERM of the run end this process too. */
int sl_trial_start(char *const *argv, const char *log);

/* Fills what the run into trial->traces showed; trial->card is the index of its card. status: of sl_trial_start. */
void sl_trial_look(struct sl_trial *trial, const struct sl_largest_device *cards, unsigned count, const char *log, int status);
