/* SPDX-License-Identifier: MIT */
/*
 * Files of /proc and /sys that are read again and again: kept open, for a program may forbid itself to open any (seccomp), and
 * count the numbers it gets.  Numbers of 1000 and above, as those of our own files; with a limit of few descriptors nothing is kept.
 */
#ifndef AGENT_PROCESS_KEPT_H
#define AGENT_PROCESS_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As sl_procfile_read and sl_procfile_number.  Any thread. */
long sl_kept_read(const char *path, char *buffer, size_t size);
bool sl_kept_number(const char *path, uint64_t *number);

/* Writer: ask the kernel for what the next two tell. */
void sl_kept_look(void);

/*
 * The program has put a seccomp filter on itself since the recording began: the writer no longer opens, removes or maps files
 * (agent/README.md, Sandboxes).
 */
bool sl_kept_sandboxed(void);

/* The process has no thread but the writer: its first one has ended, which the kernel counts to the end, and so have all others. */
bool sl_kept_deserted(void);

/*
 * Then: what the last thread said when it left by the system call, which from Linux 5.18 on is what the process ends with.  Known
 * of the first thread alone; 0, as threads of the C library say, where others outlived it.
 */
int sl_kept_last_code(void);

/* When a recording begins: what a forked child inherited is forgotten, and the filters there are are those of a container. */
void sl_kept_begin(void);

#endif
