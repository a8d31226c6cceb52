/* SPDX-License-Identifier: MIT */
/*
 * Writes files that the user asked for: first beside their place under another name, and moved there at the end.  So whatever
 * happens, the place has either the old file or the new one, which is on the disk before it replaces one: a machine may die.
 * Where there was none nothing can be lost, and the disk is not waited for.  Unfinished files are removed when a signal or
 * exit() ends the program.  A link at the place is not followed; devices, pipes and open descriptors (/dev/fd/63) are written
 * directly.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sl_save {
	FILE *out;		  /* to write to; stdout for "-" and NULL */
	char made[PATH_MAX + 32]; /* name of the unfinished file; "": written directly */
	const char *path;
};

/* True: standard output: "-", /dev/stdout or /dev/fd/1. */
bool sl_save_is_standard(const char *path);

/*
 * True: standard output, or a descriptor that whoever started us opened, as /dev/fd/63 and /proc/self/fd/63.  It is written to
 * as it is: neither replaced nor opened.
 */
bool sl_save_is_open(const char *path);

/*
 * False: errno.  by_name: the caller opens `made`, which is empty, itself, and there is no `out`; `path` is no open descriptor.
 */
bool sl_save_begin(struct sl_save *save, const char *path, bool by_name);

/*
 * Waits until the file or folder is on the disk.  False: the disk failed or is full (errno).  True where the file system cannot
 * tell.
 */
bool sl_save_sync(int at, const char *name);

/* fine: the caller wrote everything.  False: it did not, or a call failed (errno); the old file is still there. */
bool sl_save_end(struct sl_save *save, bool fine);

/*
 * Opens `path` at once under its final name, for rows that are written while a program runs.  A device or a pipe is opened as
 * it is.  Path NULL returns stdout, which is not to be closed.  Returns NULL on failure (errno).
 */
FILE *sl_save_open(const char *path);

/*
 * From now on no file, standard output included, grows by more than `bytes`; further writes fail with EFBIG. Pipes have no limit.
 */
void sl_save_limit(uint64_t bytes);

/*
 * To be called before other threads and files: signals that end a process from outside (save.c lists them) then remove
 * unfinished files and end the program as usual.  exit() removes them too, as where there is no memory.
 */
void sl_save_watch_signals(void);

/* Returns a descriptor that the first of these signals makes readable; only the second one ends the program. */
int sl_save_ask_first(void);

/* Lists a file or folder that such a signal or exit() removes, until sl_save_finished.  False: no memory, or the list is full. */
bool sl_save_unfinished(const char *path);
void sl_save_finished(const char *path);

/* Makes and lists a folder from mkdtemp's pattern.  False: errno. */
bool sl_save_make_folder(char *pattern);

/* The same beside `path`, under a name of paths_temporary that goes into `made`. */
#define SL_SAVE_FOLDER ".made" /* how that name ends */
bool sl_save_make_beside(const char *path, char *made, size_t size);

/* Between these two calls signals wait, and so do other threads' calls of this header: for work that takes several steps. */
void sl_save_hold(void);
void sl_save_release(void);

/* A new file of an analysis, readable only by the user, as traces are.  NULL: errno says why. */
FILE *sl_save_private(const char *path);
