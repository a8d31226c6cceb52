/* SPDX-License-Identifier: MIT */
/* Counting what outlives a window of time (stay.h) while the replay goes on. */
#ifndef ANALYZER_MODEL_STAYS_H
#define ANALYZER_MODEL_STAYS_H

#include "analyzer/model/model.h"

/* Each block, at model->now_ns; nothing where nobody asks. */
void sl_stays_birth(struct sl_model *model, uint32_t site, uint64_t bytes);
void sl_stays_death(struct sl_model *model, uint32_t site, uint64_t bytes, uint64_t born_ns);
/* A live block turned out to be another site's. */
void sl_stays_move(struct sl_model *model, uint32_t from, uint32_t to, uint64_t bytes, uint64_t born_ns);
/* After the last event, while the tables of live blocks are there. */
void sl_stays_end(struct sl_model *model);
void sl_stays_free(struct sl_stays *stays);

#endif
