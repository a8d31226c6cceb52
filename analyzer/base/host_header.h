/* SPDX-License-Identifier: MIT */
/*
 * Checks the Host header of a request against DNS rebinding.  Anybody can let a name of theirs point to this machine, and a web
 * page of theirs could then read our answers.  So a Host that is a name must be one that the server was told; addresses and
 * localhost are always accepted.  Any thread.
 */
#pragma once

#include <stdbool.h>

#define SL_HOST_HEADER_MAX 256

/* The host of "HOST:PORT" in lower case; "": NULL, or no host. */
void sl_host_header_name(const char *authority, char host[SL_HOST_HEADER_MAX]);
bool sl_host_header_is_ours(const char *host, const char *const *names, unsigned count);
