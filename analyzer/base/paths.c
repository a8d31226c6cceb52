/* SPDX-License-Identifier: MIT */
#include "analyzer/base/paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void sl_paths_missing(const char *path)
{
	fprintf(stderr, "stormlog-analyze: %s: %s\n", path, strerror(errno));
}

void sl_paths_empty(char *const *paths, unsigned count, const char *what)
{
	fprintf(stderr, "stormlog-analyze: no %s in", what);
	for (unsigned i = 0; i < count; i++)
		fprintf(stderr, " %s", paths[i]);
	fputs("; record one: stormlog-run -- COMMAND\n", stderr);
}
