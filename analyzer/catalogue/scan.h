/* SPDX-License-Identifier: MIT */
/*
 * Adds the runs in folders to a catalogue.  What is new, changed, or was still being written is read; the rest is not opened.
 * It looks for traces, summaries and packs (*.stormlog), four folders deep; copies of a run count as one.  A pack that finds no
 * room in TMPDIR, or that may not be read, is said and left for the next time.
 */
#pragma once

#include "analyzer/base/map.h"
#include "analyzer/catalogue/store.h"

struct sl_scan {
	struct sl_store *store;
	bool quiet;		 /* no progress on the terminal */
	SL_VECTOR(int64_t) runs; /* runs found, each once; the caller frees it with SL_DROP */
	unsigned read;		 /* how many of them were read this time */
	bool unsaved;		 /* a pack found no room */
	struct sl_map met;
	const char *missing; /* a path that does not exist (errno) */
	bool nameless;	     /* of what was read last, names of native frames could not be looked up now */
};

/* False: a path is missing, or the store failed (missing is NULL).  Parts of a run that cannot be read are reported on stderr. */
bool sl_scan_paths(struct sl_scan *scan, char *const *paths, unsigned count);
void sl_scan_free(struct sl_scan *scan);
bool sl_scan_found(const struct sl_scan *scan, int64_t run);
