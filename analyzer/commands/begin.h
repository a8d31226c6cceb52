/* SPDX-License-Identifier: MIT */
/*
 * What a verb does before it opens its first input: checks the places of its outputs, gives up the rights that no reader of traces
 * needs, and watches signals.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Files and folders that a verb reads and writes. */
struct sl_verb_files {
	char *const *inputs;		  /* ended by NULL */
	const char *reads[5], *writes[8]; /* others; NULL: not given */
	const char *through;		  /* of `writes`; may be a link: what it leads to is appended to, or the verb judges it */
	const char *open;		  /* of `writes`; SQLite has it open, and would lose its locks if it were closed */
	const char *symbols;		  /* --symbols */
	bool packs;			  /* `writes` are packs, and may replace one */
	bool changes;			  /* the inputs are folders in which files are made */
	bool processes;			  /* it reads processes of /proc */
};

/*
 * To be called once, before other threads start.  Ends the program with SL_EXIT_USAGE if an output would replace an input, a
 * recording or a link.  From here on a signal removes unfinished files.
 */
void sl_begin(const struct sl_verb_files *files);

/* False: an output would replace one of these; `why` is a sentence for people.  Folders, devices and pipes are not checked. */
bool sl_begin_may_write(const struct sl_verb_files *files, char *why, size_t size);

/* True: the folder of `path` is one of the inputs or below one. */
bool sl_begin_is_inside(const char *path, char *const *inputs);

/* True: it also has a name under which files in folders are read. */
bool sl_begin_is_read(const char *path, char *const *inputs);
