/* SPDX-License-Identifier: MIT */
/*
 * Keeps what the program said of itself (include/stormlog.h) before a recording ran, for that recording and for those of
 * forked children, which are the same program.  Any thread, async-signal-safe, allocates nothing.
 */
#pragma once

#include <stdbool.h>

#define SL_EARLY_NOTES_KEY   64u /* bytes with the end mark; longer ones are cut */
#define SL_EARLY_NOTES_VALUE 192u
#define SL_EARLY_NOTES_PAIRS 64u /* texts that are kept; later ones go only to the recording that runs */

void sl_early_notes_metadata(const char *key, const char *value);

/* The program wants stacks, or none for now. */
void sl_early_notes_stacks(bool wanted);

/* The program asked how much memory is free, so what it does next may depend on the card.  The first time is kept. */
void sl_early_notes_free_asked(void);

/* A thread has attached to the recording: the first one gives it everything. */
void sl_early_notes_attached(void);
