/* SPDX-License-Identifier: MIT */
/*
 * Suppressions in the syntax of LeakSanitizer: a line is "leak:PATTERN", which matches a leak when it is part of its
 * library, or of a function, file or module of its stack; * stands for anything, ^ and $ for the ends.  # begins a comment.
 * A built-in list names libraries that keep memory on purpose (workspaces) and allocators that hand it out again (caches).
 */
#ifndef ANALYZER_REPORT_SUPPRESS_H
#define ANALYZER_REPORT_SUPPRESS_H

#include <stdbool.h>
#include <stddef.h>

struct sl_suppressions {
	char **pattern;
	size_t count, capacity;
};

#define SL_SUPPRESSIONS_MAX 1000 /* each is held against every leak */

/* Adds the lines of the file.  false: it cannot be read (errno; E2BIG: too many), or *line of it is no suppression (errno 0). */
bool sl_suppressions_read(struct sl_suppressions *list, const char *path, unsigned *line);
void sl_suppressions_free(struct sl_suppressions *list);

/* The pattern that matches the text, or NULL. */
const char *sl_suppressions_match(const struct sl_suppressions *list, const char *text);

/* By the built-in list: "cache", "workspace", or NULL. */
const char *sl_suppressions_builtin(const char *library);

#endif
