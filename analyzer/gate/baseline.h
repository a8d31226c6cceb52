/* SPDX-License-Identifier: MIT */
/* The numbers of a run as a small file for the repository: sorted, one place a line, so that a diff of it reads. */
#ifndef ANALYZER_GATE_BASELINE_H
#define ANALYZER_GATE_BASELINE_H

#include "analyzer/gate/measure.h"

/* Replaced as a whole; false: errno. */
bool sl_baseline_write(const struct sl_measures *measures, const char *path);

/* false: why it is none, in `why`. */
bool sl_baseline_read(struct sl_measures *measures, const char *path, char *why, size_t size);

#endif
