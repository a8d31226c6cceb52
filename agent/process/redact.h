/* SPDX-License-Identifier: MIT */
/* Arguments that look like secrets do not go into a trace. */
#pragma once

#include <stddef.h>

#define SL_REDACTED "***"

/* What one argument tells of the next: its value is a secret, or is one if it is name:password (curl -u). */
enum sl_redact_follows { SL_REDACT_NOTHING, SL_REDACT_SECRET, SL_REDACT_USER };

/*
 * `argument` into out, its secret parts replaced by SL_REDACTED: the value of --name=value or --name VALUE where the name
 * looks like a key's, the user of a URL, what its query names as a secret, things shaped like access tokens.  Errs on
 * the side of masking.  follows: SL_REDACT_NOTHING for the first argument, then as the last call left it.
 */
void sl_redact_argument(const char *argument, enum sl_redact_follows *follows, char *out, size_t size);
