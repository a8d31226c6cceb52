/* SPDX-License-Identifier: MIT */
/* The names with which a trace explains itself, as this version writes them: fields, verbs, kinds, flags, families, calls. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Any of them; from the first call to the end of the program it keeps a table. */
bool sl_known_has(const char *text, size_t size);

/* A column of events. */
bool sl_known_is_field(const char *text, size_t size);
