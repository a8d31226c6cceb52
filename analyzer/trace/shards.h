/* SPDX-License-Identifier: MIT */
/* Divides the images of a folder among processes that do not communicate. */
#pragma once

#include "analyzer/trace/images.h"

/*
 * To be called after the last sl_images_add and before grouping.  Keeps only the part-th (from 0) of so many parts with about
 * the same number of bytes.  While the files stay the same, every process computes the same parts.  Asks for each file's size.
 */
void sl_shards_keep(struct sl_images *folder, unsigned part, unsigned parts);

/* To be called before sl_shards_keep: each image gets the listing, so that a reader of some parts knows of the others. */
void sl_shards_list(struct sl_images *folder);
/* To be called before grouping: adds a line of damage for each listing that lacks processes. */
void sl_shards_miss(struct sl_images *folder);
