/* SPDX-License-Identifier: MIT */
#include "server/places.h"

#include <stdio.h>

void sl_places_of(const char *pack, const char *name, char path[SL_PACKS_NAME + 64])
{
	snprintf(path, SL_PACKS_NAME + 64, "pages/%.2s/%.64s%s%s", pack, pack, *name ? "/" : "", name);
}

void sl_places_compare(const char *before, const char *after, char path[2 * SL_PACKS_NAME + 64])
{
	snprintf(path, 2 * SL_PACKS_NAME + 64, "pages/compare/%.64s-%.64s.html", before, after);
}
