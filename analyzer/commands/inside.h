/* SPDX-License-Identifier: MIT */
/* Each verb, before it opens the first input, gives up what it does not need (base/confine.h). */
#ifndef ANALYZER_COMMANDS_INSIDE_H
#define ANALYZER_COMMANDS_INSIDE_H

#include <stdbool.h>

struct sl_inside {
	char *const *inputs;		  /* NULL ends them; with a trace the other files of its process */
	const char *reads[6], *writes[8]; /* other files and folders; NULL: not given */
	const char *symbols;		  /* --symbols */
	bool node;			  /* reads processes of /proc, which Landlock keeps from whoever it confines */
};

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
