/* SPDX-License-Identifier: MIT */
#include "analyzer/answer/findings.h"

#include <string.h>

#include "common/base.h"

const struct sl_explained sl_explained[] = {
#define FINDING(ids, word, means, rule, one, one_code, two, two_code, three, three_code, suppress)                                 \
	{ids, word, means, rule, {{one, one_code}, {two, two_code}, {three, three_code}}, suppress},
#include "analyzer/answer/findings.def"
#undef FINDING
};
const size_t sl_explained_count = SL_COUNT(sl_explained);

const struct sl_explained *sl_explained_find(const char *id)
{
	size_t size = strlen(id);

	for (size_t i = 0; i < SL_COUNT(sl_explained); i++)
		for (const char *at = sl_explained[i].ids; *at; at += strspn(at, " ")) {
			if (strcspn(at, " ") == size && !strncmp(at, id, size))
				return &sl_explained[i];
			at += strcspn(at, " ");
		}
	return NULL;
}
