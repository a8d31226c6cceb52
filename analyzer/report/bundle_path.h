/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/report/report.h"

/* Path of the bundle of an out-of-memory error inside analysis/, in a buffer of PATH_MAX; false: it has none. */
bool sl_bundle_path(const struct sl_process *process, const struct sl_oom *oom, char *path, size_t size);

/*
 * The next error of which a bundle is written, after `oom` (NULL: the first of all): it is the first of its attempts, and among
 * the newest of the run.  NULL: none is left.
 */
const struct sl_oom *sl_bundle_next(const struct sl_process *process, const struct sl_oom *oom);

/* When the errors of the run were of which bundles are written, rising, in Unix time; the caller frees them. */
uint64_t *sl_bundle_times(const struct sl_report *report, size_t *count);

/* "rocm" or "cuda", by the call that failed. */
const char *sl_bundle_backend(const struct sl_process *process, const struct sl_oom *oom);

/*
 * How Stormlog's Python side describes the same error: one that PyTorch reported is raised there as PyTorch's own exception.
 * Static.
 */
const char *sl_bundle_reason(const struct sl_oom *oom);
