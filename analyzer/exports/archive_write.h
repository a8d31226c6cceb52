/* SPDX-License-Identifier: MIT */
/* Writing packs (analyzer/trace/archive.h). */
#pragma once

#include <stdio.h>

#include "analyzer/trace/images.h"

struct sl_archived {
	unsigned read; /* images that could be read */
	bool left_out; /* not in the pack: a part of a masked file that does not open, a file that was gone, names */
};

/*
 * Packs the images of run `run` (an index), or of all runs (-1); those of which no header can be read go with each, as they are,
 * and are named on stderr.  key (SL_REDACT_KEY bytes) NULL: names are not masked.  False: errno.
 */
bool sl_archive_write(FILE *out, const struct sl_images *images, int run, const uint8_t *key, struct sl_archived *packed);
