/* SPDX-License-Identifier: MIT */
/* The rows of agent/hooks/ as the collector uses them: what a recorded call means, found without calling anything. */
#pragma once

#include <stdbool.h>

#include "agent/call/call.h"
#include "attach/seen.h"

/* True: this call is watched.  Look-ups, queries and calls that matter only when they run out of memory are not. */
bool sl_rows_has(unsigned api);

/* The watched call of this name; 0: none.  Looks by halves, for a library may export 100 000 names. */
unsigned sl_rows_named(const char *name);

/* Which data behind its arguments the BPF program is to copy for this call. */
struct sl_seen_row sl_rows_wanted(unsigned api);

/* The fields of a call.  runtime: major version of the library it was made to, 0 unknown. */
struct sl_fields sl_rows_read(const struct sl_seen *seen, unsigned runtime);
