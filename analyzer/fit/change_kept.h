/* SPDX-License-Identifier: MIT */
/* Changes of what a program keeps from step to step. */
#pragma once

#include "analyzer/fit/change.h"

bool sl_fit_change_free_leak(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_no_grad_beside(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_no_grad(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_offload_joined(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_offload_kept(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
