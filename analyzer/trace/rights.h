/* SPDX-License-Identifier: MIT */
/* What the analyzer may do once it is confined (base/confine.h): read its inputs and what is beside them, write its outputs. */
#pragma once

#include <stdbool.h>

#include "analyzer/base/confine.h"
#include "analyzer/base/save.h"

struct sl_rights {
	char *const *inputs;		  /* ended by NULL; a trace stands for all files of its process */
	const char *reads[6], *writes[8]; /* other files and folders; NULL: not given */
	const char *through;		  /* of `writes`; may be a link: what it leads to is appended to, or the verb judges it */
	const char *open;		  /* of `writes`; SQLite has it open, and would lose its locks if it were closed */
	const char *symbols;		  /* --symbols */
	bool packs;			  /* `writes` are packs, and may replace one */
	bool changes;			  /* the inputs are folders in which files are made */
	bool node;			  /* reads processes of /proc, which Landlock keeps from whoever it confines */
	enum sl_confine_but but;
};

/*
 * Gives up all but these.  To be called once: before other threads start and the first input is opened, and after the lender has
 * been started.  That the kernel has no Landlock is said in the name of `program`.  False: descriptors ran out, which is said; what
 * was named may not be readable, and the program is to end.
 */
bool sl_rights_give_up(const struct sl_rights *rights, const char *program);
