/* SPDX-License-Identifier: MIT */
/* Counts, during the replay, the blocks that outlive a window of time (parts.h). */
#pragma once

#include "analyzer/model/state/model.h"

/* Called for each block, at model->now_ns, if model->stays is wanted. */
void sl_survivors_birth(struct sl_model *model, uint32_t site, uint64_t bytes);
void sl_survivors_death(struct sl_model *model, uint32_t site, uint64_t bytes, uint64_t born_ns);
/* A live block turned out to belong to another site. */
void sl_survivors_move(struct sl_model *model, uint32_t from, uint32_t to, uint64_t bytes, uint64_t born_ns);
/* To be called after the last event, while the tables of live blocks still exist. */
void sl_survivors_end(struct sl_model *model);
void sl_survivors_free(struct sl_stays *stays);
