/* SPDX-License-Identifier: MIT */
#include <fnmatch.h>

#include "agent/process/process.h"

bool sl_filter_matches(const char *glob, const char *path)
{
	const char *slash = strrchr(path, '/');

	return !fnmatch(glob, path, FNM_NOESCAPE) || (slash && !fnmatch(glob, slash + 1, FNM_NOESCAPE));
}

bool sl_filter_is_regex(const char *glob)
{
	return strchr(glob, '|') || strchr(glob, '^') || strchr(glob, '$') || strstr(glob, ".*");
}
