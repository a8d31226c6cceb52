/* SPDX-License-Identifier: MIT */
/*
 * Gives up rights before a trace is read, to limit what a hostile file could make the program do.  Landlock: the process
 * writes only where it is told to.  seccomp: it starts no program, opens no socket, signals and traces no other process.  A
 * kernel without either is no error.
 */
#pragma once

enum {
	SL_SANDBOX_FORK = 1, /* it may fork, into processes that are confined alike */
	SL_SANDBOX_PROCESSES =
		2, /* it reads other processes in /proc, which Landlock refuses to all that it confines: seccomp only */
};

/*
 * Permanent, for this thread and those it starts.  writes: files and folders that will be made or replaced; the process may write
 * below their parents and in TMPDIR.  reads: files and folders that it may read; NULL: all.  Both end with NULL.
 */
void sl_sandbox(const char *const *reads, const char *const *writes, unsigned but);
