/* SPDX-License-Identifier: MIT */
/*
 * Runs of folders into a catalogue: what is new, changed or was still being written is read, and the rest is not opened.  Traces,
 * summaries and packs (*.stormlog), four folders deep; copies of a run are one run.
 */
#ifndef ANALYZER_CATALOGUE_SCAN_H
#define ANALYZER_CATALOGUE_SCAN_H

#include "analyzer/base/map.h"
#include "analyzer/catalogue/store.h"

struct sl_scan {
	struct sl_store *store;
	bool quiet;		 /* no progress on the terminal */
	SL_VECTOR(int64_t) runs; /* found, each once; SL_DROP is the caller's */
	unsigned read;		 /* of these, now */
	struct sl_map met;
	const char *missing; /* the path that does not exist (errno) */
};

/* False: a path is missing, or the store failed (missing is NULL).  What cannot be read of a run is said on stderr. */
bool sl_scan_paths(struct sl_scan *scan, char *const *paths, unsigned count);
void sl_scan_free(struct sl_scan *scan);
bool sl_scan_found(const struct sl_scan *scan, int64_t run);

#endif
