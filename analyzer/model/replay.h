/* SPDX-License-Identifier: MIT */
/* From items of a trace, in time order, to a model: what each verb means. */
#ifndef ANALYZER_MODEL_REPLAY_H
#define ANALYZER_MODEL_REPLAY_H

#include "analyzer/model/model.h"

/* Borrows both.  blank: for who fills it otherwise; nothing can be applied. */
struct sl_model *sl_replay_blank(const struct sl_header *header, const struct sl_defs *defs);
struct sl_model *sl_replay_new(const struct sl_header *header, const struct sl_defs *defs);
void sl_replay_free(struct sl_model *model);

/* Before the first item: the totals of what was folded. */
void sl_replay_folded(struct sl_model *model, const struct sl_folded *folded);

void sl_replay_apply(struct sl_model *model, const struct sl_item *item);

/* After the last item: closes lines and ranges. */
void sl_replay_end(struct sl_model *model);

/*
 * Gives back what only replaying needs, and the analyses of the process alone: live blocks, threads, courses of tracks.
 * lives: what became of blocks is still asked for.
 */
void sl_replay_rest(struct sl_model *model, bool lives);

#endif
