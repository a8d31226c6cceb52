/* SPDX-License-Identifier: MIT */
/* What an image tells without being opened: its header, for grouping images by run, and whether its process lives. */
#pragma once

#include "analyzer/trace/trace.h"

/* Takes it from the first readable file, else from the ring.  False: none can be read. */
bool sl_image_header(const struct sl_image *image, struct sl_header *header);

/* False: all its files were last written before `since`, a Unix time in seconds. */
bool sl_image_written(const struct sl_image *image, int64_t since);

/* True: its ring says that its process is alive on this machine.  False: it is not, or there is no ring. */
bool sl_image_lives(const struct sl_image *image);
