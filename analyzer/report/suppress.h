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
#include <stdint.h>

#define SL_SUPPRESSIONS_MAX 1000

struct sl_suppressions {
	char **pattern;
	size_t count, capacity;
	/* Which a text has to be held against: a pattern waits for four of its bytes, those that fewest others have. */
	uint16_t *waiting;			    /* by the hash of four bytes: 1 + the first pattern, 0 none */
	uint16_t next[SL_SUPPRESSIONS_MAX], always; /* 1 + the next that waits for the same; those without four bytes */
};

/* Adds the lines of the file.  false: it cannot be read (errno; E2BIG: too many), or *line of it is no suppression (errno 0). */
bool sl_suppressions_read(struct sl_suppressions *list, const char *path, unsigned *line);
void sl_suppressions_free(struct sl_suppressions *list);

/* The first pattern that matches the text, or NULL. */
const char *sl_suppressions_match(const struct sl_suppressions *list, const char *text);
/* used[i] becomes true for each pattern that matches. */
void sl_suppressions_mark(const struct sl_suppressions *list, const char *text, bool *used);

/* By the built-in list: "cache", "workspace", or NULL. */
const char *sl_suppressions_builtin(const char *library);

#endif
