/* SPDX-License-Identifier: MIT */
/* Changes of sizes: of inputs, and of large temporaries. */
#pragma once

#include "analyzer/fit/change.h"

bool sl_fit_change_half_batch(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_shorter_longest(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_chunked(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
