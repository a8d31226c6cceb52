/* SPDX-License-Identifier: MIT */
#include "analyzer/report/found.h"

#include <string.h>

static const struct {
	const char *family, *name;
	enum sl_found id;
} kinds[] = {
	{"", "", SL_FOUND_none},
#define KIND(family, name, id) {#family, #family "." #name, SL_FOUND_##id},
#define GAP(name)	       {"gap", #name, SL_FOUND_##name},
#include "analyzer/report/found.def"
};

const char *sl_found_name(enum sl_found kind)
{
	return kinds[kind].name;
}

const char *sl_found_family(enum sl_found kind)
{
	return kinds[kind].family;
}

const char *sl_found_id(enum sl_found kind)
{
	return kinds[kinds[kind].id].name;
}

enum sl_found sl_found_by_name(const char *name)
{
	for (unsigned i = 1; i < SL_FOUND_COUNT; i++)
		if (!strcmp(kinds[i].name, name))
			return i;
	return SL_FOUND_none;
}
