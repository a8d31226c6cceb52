/* SPDX-License-Identifier: MIT */
/*
 * Checks the Host header of a request against DNS rebinding.  Anybody can let a name of theirs point to this machine, and a
 * page of theirs could then read our answers.  So a Host that is a name must be one of ours; numbers and localhost are
 * always fine.  Any thread.
 */
#ifndef ANALYZER_BASE_HOST_H
#define ANALYZER_BASE_HOST_H

#include <stdbool.h>

#define SL_HOST_MAX 256

/* The host of "HOST:PORT" in lower case; "": NULL, or no host. */
void sl_host_of(const char *authority, char host[SL_HOST_MAX]);
bool sl_host_is_ours(const char *host, const char *const *names, unsigned count);

#endif
