/* SPDX-License-Identifier: MIT */
/* Confines the analyzer (base/confine.h): it may then only read its inputs with their related files, and write its outputs. */
#ifndef ANALYZER_TRACE_INSIDE_H
#define ANALYZER_TRACE_INSIDE_H

#include <stdbool.h>

struct sl_inside {
	char *const *inputs;		  /* ended by NULL; a trace stands for all files of its process */
	const char *reads[6], *writes[8]; /* other files and folders; NULL: not given */
	const char *begins[8];		  /* with what a former file at writes[i] begins, which may be replaced; NULL: any text */
	const char *symbols;		  /* --symbols */
	bool changes;			  /* the inputs are folders in which files are made */
	bool node;			  /* reads processes of /proc, which Landlock keeps from whoever it confines */
	bool serves;			  /* takes connections of a socket that listens already */
};

/*
 * To be called once: before other threads start and the first input is opened, and after the lender has been started.  False:
 * this kernel has no Landlock.
 */
bool sl_inside_enter(const struct sl_inside *inside);

#endif
