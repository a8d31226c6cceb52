/* SPDX-License-Identifier: MIT */
/* Counts, during the replay, the blocks that outlive a window of time (parts.h). */
#pragma once

#include "analyzer/model/state/model.h"

/* To be called after the last event, while the tables of live blocks still exist. */
void sl_survivors_end(struct sl_model *model);
void sl_survivors_free(struct sl_stays *stays);
