/* SPDX-License-Identifier: MIT */
/* Files by a pattern in a folder, or beside a file, whose own name may have characters of patterns (lr=[0.1]). */
#pragma once

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>

/* Characters that glob() takes for a pattern, unless a backslash is before them. */
#define SL_GLOB_SPECIAL "*?[\\"

/* Runs glob() on `literal`, whose *, ?, [ and \ are letters, followed by `pattern`.  True: the caller frees `found`. */
bool sl_below_glob(const char *literal, const char *pattern, glob_t *found);
