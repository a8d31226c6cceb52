/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/report/report.h"

/* Path of the bundle of an out-of-memory error inside analysis/, in a buffer of PATH_MAX; false: it has none. */
bool sl_bundle_path(const struct sl_process *process, const struct sl_oom *oom, char *path, size_t size);

/*
 * How Stormlog's Python side describes the same error: one that PyTorch reported is raised there as PyTorch's own exception.
 * Static.
 */
const char *sl_bundle_reason(const struct sl_oom *oom);
