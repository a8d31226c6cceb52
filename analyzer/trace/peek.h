/* SPDX-License-Identifier: MIT */
/* Reads the header of an image and nothing else, for grouping images by run. */
#ifndef ANALYZER_TRACE_PEEK_H
#define ANALYZER_TRACE_PEEK_H

#include "analyzer/trace/trace.h"

/* Takes it from the first readable file, else from the ring.  False: none can be read. */
bool sl_peek_header(const struct sl_image *image, struct sl_header *header);

#endif
