/* SPDX-License-Identifier: MIT */
/* The images of a folder dealt out to processes that cannot speak to each other. */
#ifndef ANALYZER_TRACE_PARTS_H
#define ANALYZER_TRACE_PARTS_H

#include "analyzer/trace/images.h"

/*
 * After the last sl_images_add, before grouping: keeps the part-th (from 0) of so many parts of about the same bytes.  As long as the
 * files stay as they are, every process that asks has the same parts.  Asks for the size of each file.
 */
void sl_parts_keep(struct sl_images *folder, unsigned part, unsigned parts);

#endif
