/* SPDX-License-Identifier: MIT */
/* The numbers of a run as a small file for the repository, sorted and with one place per line, so that its diff can be read. */
#pragma once

#include "analyzer/gate/measure.h"

/* Replaces the whole file; false: errno. */
bool sl_baseline_write(const struct sl_measures *measures, const char *path);

/* False: `why` says why it is not a baseline. */
bool sl_baseline_read(struct sl_measures *measures, const char *path, char *why, size_t size);
