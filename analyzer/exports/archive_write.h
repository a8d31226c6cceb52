/* SPDX-License-Identifier: MIT */
/* Writing packs (analyzer/trace/archive.h). */
#pragma once

#include <stdio.h>

#include "analyzer/trace/images.h"

/*
 * Packs the images of run `run` (an index), or of all runs (-1); those of which no header can be read go with each, as they are,
 * and are named on stderr.  key (SL_REDACT_KEY bytes) NULL: names are not masked.  False: errno.  *read: how many could be read.
 */
bool sl_archive_write(FILE *out, const struct sl_images *images, int run, const uint8_t *key, unsigned *read);
