/* SPDX-License-Identifier: MIT */
/*
 * To whom a browser believes it speaks.  Anybody can let a name of theirs point to us (DNS rebinding), and their page would then
 * read our answers: a Host that is a name must be one of ours.  Numbers and localhost are nobody else's.  Any thread.
 */
#ifndef ANALYZER_BASE_HOST_H
#define ANALYZER_BASE_HOST_H

#include <stdbool.h>

#define SL_HOST_MAX 256

/* The host of "HOST:PORT" in lower case; "": NULL, or no host. */
void sl_host_of(const char *authority, char host[SL_HOST_MAX]);
bool sl_host_is_ours(const char *host, const char *const *names, unsigned count);

#endif
