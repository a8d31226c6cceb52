/* SPDX-License-Identifier: MIT */
/*
 * Suppressions in the syntax of LeakSanitizer.  A line is "leak:PATTERN"; it matches a leak whose library, or a function, file or
 * module of whose stack, contains PATTERN.  * matches any text, ^ and $ the ends.  # begins a comment. A built-in list names
 * libraries that keep memory on purpose (workspaces) and allocators that hand it out again (caches).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/report/report.h"

#define SL_SUPPRESSIONS_MAX 1000

struct sl_suppressions {
	char **pattern;
	size_t count, capacity;
	/*
	 * Index that says which patterns to try on a text: each pattern waits for four of its bytes, the rarest among the
	 * patterns.
	 */
	/* By hash of four bytes: 1 + the first pattern that waits for them, 0 none. */
	uint16_t *waiting;
	/* Next: 1 + the next pattern with the same four bytes; always: those without four literal bytes. */
	uint16_t next[SL_SUPPRESSIONS_MAX], always;
};

/* Adds the lines of the file.  False: it cannot be read (errno; E2BIG: too many), or *line of it is not a suppression (errno 0). */
bool sl_suppressions_read(struct sl_suppressions *list, const char *path, unsigned *line);
void sl_suppressions_free(struct sl_suppressions *list);

/* The first pattern that matches the text, or NULL. */
const char *sl_suppressions_match(const struct sl_suppressions *list, const char *text);
/* Sets used[i] for each pattern that matches. */
void sl_suppressions_mark(const struct sl_suppressions *list, const char *text, bool *used);

/* What the built-in list says: "cache", "workspace", or NULL. */
const char *sl_suppressions_builtin(const char *library);

/* What a suppression may name of a stack: its library, and of each frame function, file and module. Main thread only. */

/* The first pattern that matches, or NULL; library may be NULL. */
const char *sl_suppress_by_stack(const struct sl_suppressions *list, struct sl_process *process, const char *library,
				 struct sl_stack stack);
/* used[i] becomes true for each pattern that matches. */
void sl_suppress_mark_stack(const struct sl_suppressions *list, struct sl_process *process, const char *library,
			    struct sl_stack stack, bool *used);
