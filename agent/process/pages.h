/* SPDX-License-Identifier: MIT */
/*
 * Memory by mmap, because the program's malloc must not be called.  A program may lock all memory that it maps from now on
 * (mlockall) and may have a small allowance for that: our memory is not locked and takes nothing of the allowance.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_PAGE 4096u /* the smallest that there is */

/* Zeroed pages that live as long as the process, from mmap; NULL if refused.  Safe on the path of a call. */
void *sl_pages_map(size_t bytes);

/* Maps bytes of a file from `from` on, shared with it; NULL if refused. */
void *sl_pages_map_file(size_t bytes, int fd, size_t from);

/* The program has locked memory: unlock what was mapped here, and lock nothing later. */
void sl_pages_unlock(void *pages, size_t bytes);

/* True: the program locks what is mapped, as far as is known. */
bool sl_pages_are_locked(void);

/* True: mapped, but not in memory: a reader waits for the disk, or for who serves the page (userfaultfd).  Changes errno. */
bool sl_pages_wait(uintptr_t address);

/* True: the word at `address`, or around it, can be read, which the program may make untrue at any time.  Changes errno. */
bool sl_pages_readable(uintptr_t address);
