/* SPDX-License-Identifier: MIT */
/* What every verb says alike of a path that it cannot use, on stderr. */
#ifndef ANALYZER_BASE_PATHS_H
#define ANALYZER_BASE_PATHS_H

void sl_paths_missing(const char *path); /* errno says why */
/* what: "trace", what there is none of in the paths. */
void sl_paths_empty(char *const *paths, unsigned count, const char *what);

#endif
