/* SPDX-License-Identifier: MIT */
/*
 * A replayed process as bytes, and back: what its model, the analyses of it alone and its trace told, without names of native frames.
 * Bytes depend on the trace alone: not on threads, the time or the machine of the analysis.  Any thread, one process each.
 */
#ifndef ANALYZER_SUMMARY_SUMMARY_H
#define ANALYZER_SUMMARY_SUMMARY_H

#include "analyzer/report/report.h"

/* One msgpack map, zstd'ed; the caller frees it.  process->trace NULL: `damage` says why. */
void *sl_summary_pack(const struct sl_process *process, const struct sl_image *image, const struct sl_damage *damage, size_t *size);

/* Fills the process from an image that a summary has.  False: there is no trace in it, and `damage` says why. */
bool sl_summary_open(struct sl_process *process, const struct sl_image *image, struct sl_damage *damage);

#endif
