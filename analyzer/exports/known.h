/* SPDX-License-Identifier: MIT */
/* Names of the trace format that this version writes: fields, verbs, kinds, flags, families, calls. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* True: one of these names.  The first call makes a table, which is kept until the program ends. */
bool sl_known_has(const char *text, size_t size);

/* True: a column of events. */
bool sl_known_is_field(const char *text, size_t size);
