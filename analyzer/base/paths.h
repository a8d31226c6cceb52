/* SPDX-License-Identifier: MIT */
/* Paths named by the user: opens files, and prints on stderr the one sentence for each way in which a path cannot be used. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

void sl_paths_failed(const char *path); /* the path cannot be used; errno says why */
/* line: 0 is the whole file. */
void sl_paths_problem(const char *path, unsigned line, const char *reason);
/* what: such as "trace": the paths contain none. */
void sl_paths_empty(char *const *paths, unsigned count, const char *what);

struct stat;

/*
 * True: a stranger put a file that the user did not name into that folder.  A stranger is not the user, root, the folder's owner or
 * `friend`.  Of a link its own owner counts, who chose its target.
 */
bool sl_paths_is_strangers(const char *path, const struct stat *folder, uid_t friend);

/*
 * Opens a file for reading.  A FIFO, device, socket or folder, on which a reader might wait or which acts when opened, is
 * refused with EINVAL.  A descriptor, or -1 with errno.
 */
int sl_paths_open_regular(const char *path, struct stat *st);
FILE *sl_paths_open_file(const char *path); /* the same as a stream; /dev/null as an empty one; NULL with errno */
/* A regular file of less than so many GiB, behind its byte order mark.  NULL: `reason` says why, for people. */
FILE *sl_paths_open_limited(const char *path, unsigned most_gb, char *reason, size_t size);
/* For files that people write: skips the byte order mark; more than 64 MB is EFBIG */
FILE *sl_paths_open_text(const char *path);

/* True: the folder has it; its path goes into `path`, which holds `size` bytes. */
bool sl_paths_in(const char *folder, const char *name, char *path, size_t size);

/* True: the path ends in it, and something stands before. */
bool sl_paths_ends(const char *path, const char *suffix);

/* What stands behind the last slash; NULL stays NULL. */
const char *sl_paths_name(const char *path);

/* Makes the missing folders of a path.  False: errno. */
bool sl_paths_make_parents(const char *path);
