/* SPDX-License-Identifier: MIT */
/* What a reader of these inputs may still do (base/confine.h): read them and what belongs to them, and write its outputs. */
#ifndef ANALYZER_TRACE_INSIDE_H
#define ANALYZER_TRACE_INSIDE_H

#include <stdbool.h>

struct sl_inside {
	char *const *inputs;		  /* NULL ends them; with a trace the other files of its process */
	const char *reads[6], *writes[8]; /* other files and folders; NULL: not given */
	const char *symbols;		  /* --symbols */
	bool changes;			  /* the inputs are folders in which files are made */
	bool node;			  /* reads processes of /proc, which Landlock keeps from whoever it confines */
	bool serves;			  /* takes connections of a socket that listens already */
};

/* Once, before other threads and before the first input is opened; before it the lender is started.  False: this kernel has no Landlock. */
bool sl_inside_enter(const struct sl_inside *inside);

#endif
