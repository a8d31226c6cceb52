/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/parts.h"

#include "analyzer/base/paths.h"
#include "common/tracefile.h"

/* One of these ends, or that of a packed file behind it. */
static bool has_end(const char *name, const char *const *ends, size_t count)
{
	static const char *const packed[] = {"", ".gz", ".zst", ".xz"};
	char end[16];

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < SL_COUNT(packed); k++) {
			snprintf(end, sizeof(end), "%s%s", ends[i], packed[k]);
			if (sl_paths_ends(name, end))
				return true;
		}
	return false;
}

bool sl_names_is_ring(const char *name)
{
	static const char *const ends[] = {SL_RING_SUFFIX};

	return has_end(name, ends, SL_COUNT(ends));
}

bool sl_names_is_trace(const char *name)
{
	return sl_paths_ends(name, SL_TRACE_SUFFIX) || sl_names_is_ring(name);
}

bool sl_names_is_pack(const char *name)
{
	return sl_paths_ends(name, SL_PACK_SUFFIX);
}

bool sl_names_may_be_snapshot(const char *name)
{
	static const char *const ends[] = {".pickle", ".pkl"};

	return has_end(name, ends, SL_COUNT(ends));
}

bool sl_names_may_be_log(const char *name)
{
	static const char *const ends[] = {".log", ".out", ".err"};

	return has_end(name, ends, SL_COUNT(ends));
}

char *sl_names_stem(const char *path, unsigned *segment)
{
	char *stem = strdup(path), *end = stem, *dot;

	for (char *at = stem; (at = strstr(at, sl_names_is_ring(path) ? SL_RING_SUFFIX : SL_TRACE_SUFFIX)); at++)
		end = at;
	*end = 0;
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
