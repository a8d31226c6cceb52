/* SPDX-License-Identifier: MIT */
/*
 * Files of /proc and /sys that are read again and again.  They are kept open, because a program may forbid itself to open
 * any (seccomp), with high descriptors, because it may count the low ones: 1000 and above, as for our own files.  Where few
 * descriptors are allowed nothing is kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same as sl_procfile_read and sl_procfile_number.  Any thread. */
long sl_kept_read(const char *path, char *buffer, size_t size);
bool sl_kept_number(const char *path, uint64_t *number);

/* Writer: asks the kernel for what the next two functions answer.  `another`: there is a thread of ours beside the writer. */
void sl_kept_look(bool (*another)(void));

/*
 * The program has put a seccomp filter on itself since the recording began: the writer no longer opens, removes or maps files
 * (agent/README.md, Sandboxes).
 */
bool sl_kept_sandboxed(void);

/*
 * True: the process has no thread but ours.  The first thread has ended, which the kernel shows until the end, and so
 * have all others.
 */
bool sl_kept_deserted(void);

/*
 * The status with which the last thread left by the system call, which from Linux 5.18 on is the process's exit status.
 * Known of the first thread alone; 0, as the C library gives it, where others outlived it.
 */
int sl_kept_last_code(void);

/*
 * Call this when a recording begins: what a forked child inherited is forgotten, and filters that are there already count
 * as the container's.
 */
void sl_kept_begin(void);
