/* SPDX-License-Identifier: MIT */
/* Names of the trace format that this version writes: fields, verbs, kinds, flags, families, and calls of the vendors. */
#pragma once

#include <stddef.h>

enum sl_known_kind { SL_KNOWN_NOT, SL_KNOWN_WORD, SL_KNOWN_CALL };

/* The first call makes a table, which is kept until the program ends. */
enum sl_known_kind sl_known_as(const char *text, size_t size);
