/* SPDX-License-Identifier: MIT */
/* Divides the images of a folder among processes that do not communicate. */
#ifndef ANALYZER_TRACE_PARTS_H
#define ANALYZER_TRACE_PARTS_H

#include "analyzer/trace/images.h"

/*
 * To be called after the last sl_images_add and before grouping.  Keeps only the part-th (from 0) of so many parts with about
 * the same number of bytes.  While the files stay the same, every process computes the same parts.  Asks for each file's size.
 */
void sl_parts_keep(struct sl_images *folder, unsigned part, unsigned parts);

#endif
