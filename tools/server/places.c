/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <inttypes.h>

void sl_places_of(const char *pack, const char *name, char path[SL_PACKS_NAME + 64])
{
	snprintf(path, SL_PACKS_NAME + 64, "pages/%.2s/%.64s%s%s", pack, pack, *name ? "/" : "", name);
}

void sl_places_window(const char *pack, uint64_t from_ns, uint64_t to_ns, char path[SL_PACKS_NAME + 64])
{
	char name[48];

	snprintf(name, sizeof(name), "%" PRIx64 "-%" PRIx64 SL_WINDOW_SUFFIX, from_ns, to_ns);
	sl_places_of(pack, name, path);
}

void sl_places_compare(const char *before, const char *after, char path[2 * SL_PACKS_NAME + 64])
{
	snprintf(path, 2 * SL_PACKS_NAME + 64, "pages/compare/%.64s-%.64s." SL_PLACES_PAGE, before, after);
}
