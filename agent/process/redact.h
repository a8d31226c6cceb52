/* SPDX-License-Identifier: MIT */
/* Arguments that look like secrets do not go into a trace. */
#pragma once

#include <stddef.h>

#define SL_REDACTED "***"

/* What an argument says about the next one: it is a secret, or is one if it has the form name:password (curl -u). */
enum sl_redact_follows { SL_REDACT_NOTHING, SL_REDACT_SECRET, SL_REDACT_USER };

/*
 * `argument` into out, its secret parts replaced by SL_REDACTED: the value of --name=value or --name VALUE where the name looks
 * like a key's, the user of a URL, secrets in its query, and what looks like an access token.  Errs on the side of masking.
 * follows: SL_REDACT_NOTHING for the first argument, then as the last call left it.
 */
void sl_redact_argument(const char *argument, enum sl_redact_follows *follows, char *out, size_t size);
