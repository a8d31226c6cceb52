/* SPDX-License-Identifier: MIT */
/* Each verb, before it opens the first input, gives up what it does not need (trace/inside.h). */
#ifndef ANALYZER_COMMANDS_INSIDE_H
#define ANALYZER_COMMANDS_INSIDE_H

#include "analyzer/trace/inside.h"

/* Once, before other threads.  Says where the kernel cannot confine, and goes on; from here on a signal removes what is unfinished. */
void sl_inside(const struct sl_inside *inside);

/* Row of a verb that names functions; sl_arguments_next takes its value. */
#define SL_OPTION_SYMBOLS                                                                                                          \
	{                                                                                                                          \
		"--symbols", 0, "DIR",                                                                                             \
			"look there too for libraries, programs and debug files of the recorded build (default: where they were)"  \
	}

/*
 * report.html of `folder` in the reader's browser: a process that never sees the trace waits until it is asked.  Before sl_inside.
 */
void sl_browser_start(const char *folder);
void sl_browser_open(void);

#endif
