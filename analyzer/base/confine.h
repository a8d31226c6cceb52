/* SPDX-License-Identifier: MIT */
/*
 * Gives up rights before a trace is read, to limit what a hostile file could make the program do.  Landlock (ABI 1 and later): it
 * may read its inputs, what the system's libraries need, and TMPDIR; it may write below the parents of its outputs and in TMPDIR. A
 * filter of system calls: it may execute nothing and open no socket.  Libraries that traces name may lie anywhere; base/lender.h
 * opens those.
 */
#pragma once

#include <stdbool.h>

enum sl_confine_but {
	SL_CONFINE_ALL,
	SL_CONFINE_BUT_ACCEPT, /* of a socket that listens already */
	SL_CONFINE_BUT_FORK,   /* into processes that are confined alike; it may set the modes of its terminal */
};

/*
 * Permanent, for this thread and those it starts.  reads: files (with the names of their neighbours) and folders with
 * everything below them (and traces that links in them lead to); NULL: everything.  writes: files and folders that will be made
 * or replaced.  Both end with NULL.  False: this kernel has no Landlock, and reading and writing stay as they were; or, with
 * errno EMFILE or ENFILE, descriptors ran out, and some of them cannot be read or written.
 */
bool sl_confine(const char *const *reads, const char *const *writes, enum sl_confine_but but);

/* Only the filter of system calls. */
void sl_confine_calls(enum sl_confine_but but);
