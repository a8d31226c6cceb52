/* SPDX-License-Identifier: MIT */
/* Arguments that look like secrets do not go into a trace. */
#ifndef AGENT_PROCESS_REDACT_H
#define AGENT_PROCESS_REDACT_H

#include <stddef.h>

#define SL_MASK "***"

/* What an argument said of the next one: its value is a secret; it is one if it is a name:password (curl -u). */
enum sl_mask_follows { SL_MASK_NOTHING, SL_MASK_SECRET, SL_MASK_USER };

/*
 * `argument` into out, its secret parts replaced by SL_MASK: the value of --name=value or --name VALUE where the name
 * looks like a key's, the user of a URL, what its query names as a secret, things shaped like access tokens.  Errs on
 * the side of masking.  follows: SL_MASK_NOTHING for the first argument, then as the last call left it.
 */
void sl_mask_argument(const char *argument, enum sl_mask_follows *follows, char *out, size_t size);

#endif
