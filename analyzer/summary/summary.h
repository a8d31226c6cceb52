/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads a replayed process as bytes: its model, the analyses of this process alone and what its trace reported,
 * without names of native frames.  The bytes depend only on the trace, not on threads, time or machine of the analysis.  Any
 * thread, one process each.
 */
#ifndef ANALYZER_SUMMARY_SUMMARY_H
#define ANALYZER_SUMMARY_SUMMARY_H

#include "analyzer/report/report.h"

/* One msgpack map, compressed with zstd; the caller frees it.  process->trace NULL: `damage` says why. */
void *sl_summary_pack(const struct sl_process *process, const struct sl_image *image, const struct sl_damage *damage, size_t *size);

/* Fills the process from an image that is in a summary.  False: it contains no trace, and `damage` says why. */
bool sl_summary_open(struct sl_process *process, const struct sl_image *image, struct sl_damage *damage);

#endif
