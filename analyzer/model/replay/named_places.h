/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/model/state/model.h"

/* Fills model->born_named and named figures of model->born.  After sl_between_born with the same instant, before sl_replay_rest. */
void sl_named_born(struct sl_model *model, uint64_t since_ns);
