/* SPDX-License-Identifier: MIT */
/* Paths in the store of what child processes have made. */
#pragma once

#include "server/packs.h"

/* What a child made for the page: its data, or in a build without the interactive page all of it. */
#if SL_REPORT_PAGE
#define SL_PLACES_PAGE "page.msgpack.gz"
#else
#define SL_PLACES_PAGE "page.html"
#endif
#define SL_WINDOW_SUFFIX ".window"

/* "pages/ab/abcd.../NAME"; the second for a comparison of two packs. */
void sl_places_of(const char *pack, const char *name, char path[SL_PACKS_NAME + 64]);
/* The lines of only a part of the run, in ns since it began. */
void sl_places_window(const char *pack, uint64_t from_ns, uint64_t to_ns, char path[SL_PACKS_NAME + 64]);
void sl_places_compare(const char *before, const char *after, char path[2 * SL_PACKS_NAME + 64]);
