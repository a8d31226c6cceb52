/* SPDX-License-Identifier: MIT */
/*
 * Memory by mmap, since the program's malloc must not be called.  A program may have all its memory locked that it maps from now
 * on (mlockall), and few bytes that it may lock: ours are not locked, nor taken from what it may.
 */
#ifndef AGENT_PAGES_H
#define AGENT_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed pages that live as long as the process, from mmap; NULL if refused.  Safe on the path of a call. */
void *sl_pages_map(size_t bytes);

/* Bytes of a file from `from` on, shared with it; NULL if refused. */
void *sl_pages_map_file(size_t bytes, int fd, size_t from);

/* The program has locked memory: what was mapped here is not to be, nor what will be. */
void sl_pages_unlock(void *pages, size_t bytes);

/* The program locks what is mapped, as far as is known. */
bool sl_pages_are_locked(void);

#endif
