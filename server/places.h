/* SPDX-License-Identifier: MIT */
/* Paths in the store of what child processes have made. */
#ifndef SERVER_PLACES_H
#define SERVER_PLACES_H

#include "server/packs.h"

#define SL_WINDOW_SUFFIX ".window.html"

/* "pages/ab/abcd.../NAME"; the second for a comparison of two packs. */
void sl_places_of(const char *pack, const char *name, char path[SL_PACKS_NAME + 64]);
/* A report whose lines cover only a window, in ns since the run began. */
void sl_places_window(const char *pack, uint64_t from_ns, uint64_t to_ns, char path[SL_PACKS_NAME + 64]);
void sl_places_compare(const char *before, const char *after, char path[2 * SL_PACKS_NAME + 64]);

#endif
