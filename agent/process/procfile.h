/* SPDX-License-Identifier: MIT */
/*
 * Small files of the kernel, read whole by system calls: no malloc, no stdio, no cancellation point, and not
 * through the C library's open, which the job may have interposed.  errno is left as it was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads at most size - 1 bytes of the file and terminates them; returns their number, or -1 (buffer then empty). */
long sl_procfile_read(const char *path, char *buffer, size_t size);

/* Reads a file that is one decimal number; false: it is not ("max" is none). */
bool sl_procfile_number(const char *path, uint64_t *number);

/*
 * Finds the first line that starts with `name` and gives what follows, blanks skipped, cut to size - 1 bytes.  Takes little
 * stack.
 */
bool sl_procfile_find(const char *path, const char *name, char *line, size_t size);

/* What follows `name` at the start of a line, blanks skipped; NULL when no line starts so. */
const char *sl_procfile_line(const char *content, const char *name);

/* A decimal number at the start of `text`; false when there is none. */
bool sl_procfile_digits(const char *text, uint64_t *number);

/* A set of signals as the kernel prints it, sixteen hexadecimal digits: number N is bit N - 1. */
uint64_t sl_procfile_signals(const char *digits);

/* State of process or thread `pid`: 'R' runs or could, 'S' sleeps...; 0: there is no such process. */
char sl_procfile_state(uint64_t pid);

/* Parent of process `pid`; 0: there is none, or no such process. */
uint64_t sl_procfile_parent(uint64_t pid);

/* Leader of the session of process `pid`, 0: of this process, as /proc counts; 0: it is outside, or there is no such process. */
uint64_t sl_procfile_session(uint64_t pid);

#define SL_PROCFILE_HOST 4026531836u /* the host's pid namespace: PROC_PID_INIT_INO, fixed since Linux 3.8 */

/* Number of the pid namespace of process `pid`, 0: of this process; 0: not known. */
uint64_t sl_procfile_namespace(uint64_t pid);

/*
 * Start of process `pid` in clock ticks after boot (/proc/PID/stat, field 22); 0: there is no such process.  pid 0: of this
 * process, whatever it is called where /proc was mounted (a pid namespace without a /proc of its own).
 */
uint64_t sl_procfile_start(uint64_t pid);
