/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/names.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/paths.h"
#include "common/tracefile.h"

bool sl_names_is_ring(const char *name)
{
	return sl_paths_ends(name, SL_RING_SUFFIX);
}

bool sl_names_is_trace(const char *name)
{
	return sl_paths_ends(name, SL_TRACE_SUFFIX) || sl_names_is_ring(name);
}

bool sl_names_is_pack(const char *name)
{
	return sl_paths_ends(name, SL_PACK_SUFFIX);
}

char *sl_names_stem(const char *path, unsigned *segment)
{
	char *stem = strdup(path), *dot;
	size_t size = strlen(stem);

	stem[size - strlen(sl_names_is_ring(path) ? SL_RING_SUFFIX : SL_TRACE_SUFFIX)] = 0;
	*segment = 1;
	dot = strrchr(stem, '.');
	if (dot && strlen(dot) == 7 && strspn(dot + 1, "0123456789") == 6) {
		*segment = (unsigned)atoi(dot + 1);
		*dot = 0;
	}
	return stem;
}

unsigned sl_names_segment(const char *path)
{
	unsigned segment;

	free(sl_names_stem(path, &segment));
	return segment;
}
