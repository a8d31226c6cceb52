/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads a replayed process as bytes: its model, the analyses of this process alone and what its trace reported,
 * without names of native frames.  The bytes depend only on the trace, not on threads, time or machine of the analysis.  Any
 * thread, one process each.
 */
#pragma once

#include <pthread.h>

#include "analyzer/report/report.h"
#include "analyzer/trace/summaries.h"

/*
 * What the processes of a summary have in common.  The pool finds what a process shares with the one before, so it stays
 * entered from one to the next.  It is emptied when it is large, and sooner if two consecutive processes differed, so that it
 * does not grow with the number of processes.
 */
struct sl_summary_commons {
	pthread_mutex_t lock;
	struct sl_pool *frames; /* each once */
	uint64_t key[16];
	const void *last; /* the frame of this key; NULL: none */
	size_t size;
	bool differed;
};
void sl_summary_begin(struct sl_summary_commons *commons);
void sl_summary_next(struct sl_summary_commons *commons); /* the process before was freed */
void sl_summary_end(struct sl_summary_commons *commons);  /* the frames' commons are gone */

/*
 * Fills bytes, size and common: msgpack maps, compressed with zstd; the caller frees the bytes.  process->trace NULL: `damage`
 * says why.
 */
void sl_summary_pack(struct sl_summary_frame *frame, struct sl_summary_commons *commons, const struct sl_process *process,
		     const struct sl_image *image, const struct sl_damage *damage);

/* The frames of a process in a summary as they are.  bytes NULL: they cannot be read, and `damage` says why. */
void sl_summary_copy(struct sl_summary_frame *frame, struct sl_summary_commons *commons, const struct sl_image *image,
		     struct sl_damage *damage);

/* Fills the process from an image that is in a summary.  False: it contains no trace, and `damage` says why. */
bool sl_summary_open(struct sl_process *process, const struct sl_image *image, struct sl_damage *damage);
