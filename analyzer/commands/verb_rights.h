/* SPDX-License-Identifier: MIT */
/* Each verb gives up the rights that it does not need before it opens its first input (trace/rights.h). */
#pragma once

#include "analyzer/trace/rights.h"

/*
 * Called once, before other threads start.  Ends the program with SL_EXIT_USAGE if an output would replace an input or a file that
 * is not a former output (replace.h).  Prints a note if the kernel cannot confine, and goes on.  From here on a signal removes
 * unfinished files.
 */
void sl_verb_rights(const struct sl_rights *rights);

/* The row of verbs that name functions; sl_arguments_parse takes its value. */
#define SL_OPTION_SYMBOLS                                                                                                          \
	{                                                                                                                          \
		"--symbols", 0, "DIR",                                                                                             \
			"look there too for libraries, programs and debug files of the recorded build (default: where they were)"  \
	}

/*
 * Prepares to open `folder`'s report.html in the reader's browser: starts a process that never sees the trace and waits for the
 * request. To be called before sl_verb_rights.
 */
void sl_browser_start(const char *folder);
void sl_browser_open(void);
