/* SPDX-License-Identifier: MIT */
/* What the ids of verdicts and findings mean, from findings.def. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyzer/report/found.h"

struct sl_explained {
	enum sl_found id;
	const char *word, *means, *rule;
	struct {
		const char *what, *code;
	} way[3];
	const char *suppress; /* "": it cannot be */
};
extern const struct sl_explained sl_explained[];
extern const size_t sl_explained_count;

/* name: an id, or one of before they were joined.  NULL: there is none. */
const struct sl_explained *sl_explained_find(const char *name);
