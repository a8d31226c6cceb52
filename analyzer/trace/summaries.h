/* SPDX-License-Identifier: MIT */
/*
 * Files of replayed processes, X.summary: zstd frames.  The first holds the index (one map), each other frame one process (one
 * map, analyzer/summary).  Frames are copied unchanged from file to file, so merging never changes a process.
 */
#ifndef ANALYZER_TRACE_SUMMARIES_H
#define ANALYZER_TRACE_SUMMARIES_H

#include <stdio.h>

#include "analyzer/trace/trace.h"

#define SL_SUMMARY_SUFFIX  ".summary"
#define SL_SUMMARY_FORMAT  "stormlog.summary"
#define SL_SUMMARY_VERSION 3

bool sl_summaries_named(const char *path);

/* Calls `add` for each process of the file; the identity then belongs to the callee.  False: not a summary; `why` says more. */
typedef void sl_summaries_add(void *context, const char *name, struct sl_header *identity, uint64_t offset, uint64_t bytes);
bool sl_summaries_list(const char *path, sl_summaries_add *add, void *context, const char **why);

/* The map of one process, decompressed. */
struct sl_summary_part {
	msgpack_object map;
	msgpack_zone zone;
	uint8_t *bytes;
};
bool sl_summaries_read(struct sl_summary_part *part, const struct sl_image *image, struct sl_damage *damage);
void sl_summaries_close(struct sl_summary_part *part);

/* The frame unchanged, malloc'ed; NULL with a line in `damage`. */
void *sl_summaries_frame(const struct sl_image *image, struct sl_damage *damage);

/* Written in the order in which they are given. */
struct sl_summary_frame {
	const char *name;
	const struct sl_header *identity;
	void *bytes;
	size_t size;
};
bool sl_summaries_write(FILE *out, const struct sl_summary_frame *frames, size_t count);

#endif
