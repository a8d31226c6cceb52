/* SPDX-License-Identifier: MIT */
/* Changes of the optimizer's state, of gradients, and of copies of the model. */
#pragma once

#include "analyzer/fit/change.h"

bool sl_fit_change_half_state(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_state_8bit(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_set_to_none(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_no_second_copy(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
