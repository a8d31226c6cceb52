/* SPDX-License-Identifier: MIT */
/*
 * Files of replayed processes, X.summary: zstd frames.  A skippable one tells the file from other data of zstd.  The next holds
 * the index (one map).  Each further frame holds one map: first the commons (what several processes share, stored once), then
 * one process each (analyzer/summary).  Frames are copied unchanged from file to file, so merging never changes a process.
 */
#pragma once

#include <pthread.h>
#include <stdio.h>

#include "analyzer/trace/trace.h"

#define SL_SUMMARY_SUFFIX  ".summary"
#define SL_SUMMARY_FORMAT  "stormlog.summary"
#define SL_SUMMARY_VERSION 5

bool sl_summaries_named(const char *path);

/* A frame that several processes need.  The first of them that is read takes the lock and reads it. */
struct sl_common {
	struct sl_image at; /* summary, offset, bytes and name alone */
	unsigned users;
	pthread_mutex_t lock;
	struct sl_trace *trace; /* with what is common alone; NULL: not read yet */
	bool sound, full;	/* full: it did not fit into the budget of names */
	const void *frame;	/* its bytes, as the merger keeps them; NULL: not read yet */
};
void sl_common_leave(struct sl_common *common); /* the last user frees it; NULL is allowed */

/*
 * Calls `add` for each process of the file; the image then belongs to the callee.  False: it cannot be listed, and `why` says more;
 * foreign: it is none of stormlog's, and so holds no part of a run.  Of a torn file those processes that are not in it whole cannot
 * be read.
 */
typedef void sl_summaries_add(void *context, const struct sl_image *image);
bool sl_summaries_list(const char *path, sl_summaries_add *add, void *context, bool *foreign, const char **why);

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

/* Writes frames in the given order.  Processes are no longer marked as parts of a listing where all of it is here. */
struct sl_summary_frame {
	const char *name;
	const struct sl_header *identity;
	void *bytes;
	size_t size;
	const void *common; /* a frame; equal ones have one address; NULL: none */
	size_t common_size;
	struct sl_listing listing;
};
bool sl_summaries_write(FILE *out, const struct sl_summary_frame *frames, size_t count);
