/* SPDX-License-Identifier: MIT */
/* Activations of layers that are recomputed. */
#pragma once

#include "analyzer/fit/change.h"

bool sl_fit_change_checkpointing(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
