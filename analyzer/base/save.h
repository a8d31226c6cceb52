/* SPDX-License-Identifier: MIT */
/*
 * Files that the user asked for: written beside their place under a name of their own and moved there at the end, so that
 * the place holds the old one or the new one, whatever happens; and what is unfinished when a signal ends the program is
 * removed.  A link at the place is replaced, not followed; devices and pipes are written as they are.
 */
#ifndef ANALYZER_BASE_SAVE_H
#define ANALYZER_BASE_SAVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct sl_save {
	FILE *out;		  /* to write to; stdout for "-" and NULL */
	char made[PATH_MAX + 32]; /* "": written as it is */
	const char *path;
};

/* false: errno.  by_name: `made` is for somebody who opens it himself, and there is no `out`. */
bool sl_save_begin(struct sl_save *save, const char *path, bool by_name);

/* fine: all was written.  false: it was not, or the file system refused (errno); what was there is still there. */
bool sl_save_end(struct sl_save *save, bool fine);

/* Before other threads and files: SIGINT, SIGTERM and SIGHUP remove what is unfinished, then end the program as ever. */
void sl_save_watch_signals(void);

/* From now on the first of these signals makes this descriptor readable, and only the next one ends the program. */
int sl_save_ask_first(void);

/* A file or a folder of ours that is removed then, until it is finished. */
void sl_save_unfinished(const char *path);
void sl_save_finished(const char *path);

/* A new file of an analysis: as traces, for nobody but the user.  NULL: errno says why. */
FILE *sl_save_private(const char *path);

#endif
