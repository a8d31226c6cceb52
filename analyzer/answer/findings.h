/* SPDX-License-Identifier: MIT */
/* What the ids of verdicts and findings mean, from findings.def. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sl_explained {
	const char *ids; /* separated by blanks */
	const char *word, *means, *rule;
	struct {
		const char *what, *code;
	} way[3];
	const char *suppress; /* "": it cannot be */
};
extern const struct sl_explained sl_explained[];
extern const size_t sl_explained_count;

/* NULL: no such id. */
const struct sl_explained *sl_explained_find(const char *id);
