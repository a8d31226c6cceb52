/* SPDX-License-Identifier: MIT */
/* A word for a command line that a user may paste. */
#pragma once

#include <stddef.h>

/* The word as a POSIX shell reads it back: unchanged where nothing in it is special, else in single quotes.  Cut at size. */
const char *sl_shell_word(char *out, size_t size, const char *word);
