/* SPDX-License-Identifier: MIT */
/* The header of an image without the rest of it, for grouping images by run. */
#ifndef ANALYZER_TRACE_PEEK_H
#define ANALYZER_TRACE_PEEK_H

#include "analyzer/trace/trace.h"

/* From its first readable file, else its ring.  False: none can be read. */
bool sl_peek_header(const struct sl_image *image, struct sl_header *header);

#endif
