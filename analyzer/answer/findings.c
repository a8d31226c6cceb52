/* SPDX-License-Identifier: MIT */
#include "analyzer/answer/findings.h"

#include <string.h>

#include "common/base.h"

const struct sl_explained sl_explained[] = {
#define FINDING(id, word, means, rule, one, one_code, two, two_code, three, three_code, suppress)                                  \
	{SL_FOUND_##id, word, means, rule, {{one, one_code}, {two, two_code}, {three, three_code}}, suppress},
#include "analyzer/answer/findings.def"
#undef FINDING
};
const size_t sl_explained_count = SL_COUNT(sl_explained);

const struct sl_explained *sl_explained_find(const char *name)
{
	const char *id = sl_found_id(sl_found_by_name(name));

	for (size_t i = 0; i < SL_COUNT(sl_explained); i++)
		if (!strcmp(sl_found_id(sl_explained[i].id), id))
			return &sl_explained[i];
	return NULL;
}
