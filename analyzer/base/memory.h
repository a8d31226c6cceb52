/* SPDX-License-Identifier: MIT */
/*
 * Checked allocation: without memory no report is complete, so the program prints a message and exits with status 3.  The
 * caller frees what is returned.  Any thread.
 */
#pragma once

#include <stdarg.h>

/* Pass what malloc(), calloc(), strdup() or similar returned. */
void *sl_memory_must(void *memory) __attribute__((returns_nonnull));

/* NULL returns NULL. */
char *sl_memory_copy(const char *text);

char *sl_memory_print(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
char *sl_memory_vprint(const char *format, va_list arguments) __attribute__((format(printf, 1, 0), returns_nonnull));
