/* SPDX-License-Identifier: MIT */
#include "attach/libraries.h"

#include <stdlib.h>
#include <string.h>

bool sl_libraries_may_be(const struct sl_mapping *mapping, unsigned *runtime)
{
	const char *name = mapping->is_code && mapping->name ? strrchr(mapping->name, '/') + 1 : "", *at, *version;

	if (!strstr(name, ".so") || (!strstr(name, "cuda") && !strstr(name, "amdhip64")))
		return false;
	if ((at = strstr(name, "cudart")))
		at += strlen("cudart");
	else if ((at = strstr(name, "amdhip64")))
		at += strlen("amdhip64");
	if (at && (version = strstr(at, ".so.")))
		*runtime = (unsigned)atoi(version + strlen(".so."));
	else if (at && atoi(at) > 0)
		*runtime = (unsigned)atoi(at);
	return true;
}

static bool find(void *data, const struct sl_mapping *mapping)
{
	unsigned runtime;
	bool *found = data;

	return *found = sl_libraries_may_be(mapping, &runtime);
}

bool sl_libraries_any(long pid)
{
	bool found = false;

	sl_mappings_each(pid, find, &found);
	return found;
}
