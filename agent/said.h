/* SPDX-License-Identifier: MIT */
/*
 * What the program said of itself (include/stormlog.h) before there was a recording to write it in: kept for that, and for
 * the recordings of forked children, which are the same program.  Any thread, async-signal-safe, allocates nothing.
 */
#ifndef AGENT_SAID_H
#define AGENT_SAID_H

#include <stdbool.h>

#define SL_SAID_KEY   64u /* bytes with the end mark; longer ones are cut */
#define SL_SAID_VALUE 192u
#define SL_SAID_PAIRS 64u /* kept; later ones are said to the recording that runs alone */

void sl_said_metadata(const char *key, const char *value);

/* Stacks are wanted, or not for now. */
void sl_said_stacks(bool wanted);

/* It asked how much memory is free: what it does then may depend on the card.  The first time is kept. */
void sl_said_free_asked(void);

/* A thread has attached to the recording: the first one tells it everything. */
void sl_said_attached(void);

#endif
