/* SPDX-License-Identifier: MIT */
/* Paths that a user named: how files are opened, and the one sentence (on stderr) for each way in which a path cannot be used. */
#ifndef ANALYZER_BASE_PATHS_H
#define ANALYZER_BASE_PATHS_H

#include <stdbool.h>
#include <stdio.h>

void sl_paths_missing(const char *path); /* errno says why */
/* what: "trace", what there is none of in the paths. */
void sl_paths_empty(char *const *paths, unsigned count, const char *what);

/*
 * A file to read from, never anything that a reader would wait for or that acts when it is opened: a FIFO, a device, a
 * socket or a folder is EINVAL.  A descriptor, or -1 with errno.
 */
struct stat;
int sl_paths_open_regular(const char *path, struct stat *st);
FILE *sl_paths_open_file(const char *path); /* the same as a stream, or /dev/null as an empty one; NULL with errno */
FILE *sl_paths_open_text(const char *path); /* one that a person writes: the same, past its mark; of more than 64 MB is EFBIG */

/* The folders that a path goes through, where they are not there yet.  false: errno. */
bool sl_paths_make_parents(const char *path);

/* At the beginning of a text file: past the byte order mark that some editors write there. */
void sl_paths_skip_mark(FILE *file);

#endif
