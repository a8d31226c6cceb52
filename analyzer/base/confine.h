/* SPDX-License-Identifier: MIT */
/*
 * Before a trace is read a program gives up what it does not need, so that what a hostile file might make it do stays inside:
 * by Landlock (ABI 1 and later) it reads its inputs, what the system's libraries need, and TMPDIR, and writes below the parents
 * of its outputs and in TMPDIR; by a filter of system calls it executes nothing and opens no socket of any kind.  Libraries that
 * traces name lie anywhere: base/lender.h opens those.
 */
#ifndef ANALYZER_BASE_CONFINE_H
#define ANALYZER_BASE_CONFINE_H

#include <stdbool.h>

/*
 * For good, for this thread and those that it starts.  reads: files (and names of what is beside them), and folders with what is
 * below them (and traces that links in them lead to); NULL: everything.  writes: files and folders that will be made or replaced.  NULL ends both.  false: this kernel
 * has no Landlock, and reading and writing are as before.  serves: connections of a socket that listens already are taken.
 */
bool sl_confine(const char *const *reads, const char *const *writes, bool serves);

/* The filter of system calls alone. */
void sl_confine_calls(bool serves);

#endif
