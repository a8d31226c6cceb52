/* SPDX-License-Identifier: MIT */
/*
 * Memory that is there, or the program's end: without memory no report is whole, so the program says so and exits
 * with status 3.  What is returned is the caller's to free().  Any thread.
 */
#ifndef ANALYZER_BASE_MEMORY_H
#define ANALYZER_BASE_MEMORY_H

#include <stdarg.h>

/* What malloc(), calloc(), strdup() and their kin returned. */
void *sl_memory_must(void *memory) __attribute__((returns_nonnull));

/* NULL of NULL. */
char *sl_memory_copy(const char *text);

char *sl_memory_print(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
char *sl_memory_vprint(const char *format, va_list arguments) __attribute__((format(printf, 1, 0), returns_nonnull));

#endif
