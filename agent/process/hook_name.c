/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "agent/process/hook_rows.h"

bool sl_hooks_named(const char *symbol, const char *name)
{
	static const char *const suffixes[] = {"", "_v2", "_v3", "_v4", "_ptsz", "_ptds", "_spt", "_v2_ptsz"};
	size_t length = strlen(name);

	if (strncmp(symbol, name, length))
		return false;
	for (size_t i = 0; i < SL_COUNT(suffixes); i++)
		if (!strcmp(symbol + length, suffixes[i]))
			return true;
	return false;
}
