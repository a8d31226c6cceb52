/* SPDX-License-Identifier: MIT */
/* What the analyzer may do once it is confined (base/confine.h): read its inputs and what is beside them, write its outputs. */
#pragma once

#include <stdbool.h>

struct sl_rights {
	char *const *inputs;		  /* ended by NULL; a trace stands for all files of its process */
	const char *reads[6], *writes[8]; /* other files and folders; NULL: not given */
	const char *begins[8];		  /* with what a former file at writes[i] begins, which may be replaced; NULL: any text */
	const char *symbols;		  /* --symbols */
	bool changes;			  /* the inputs are folders in which files are made */
	bool node;			  /* reads processes of /proc, which Landlock keeps from whoever it confines */
	bool serves;			  /* takes connections of a socket that listens already */
};

/*
 * Gives up all but these.  To be called once: before other threads start and the first input is opened, and after the lender has
 * been started.  False: this kernel has no Landlock.
 */
bool sl_rights_give_up(const struct sl_rights *rights);
