/* SPDX-License-Identifier: MIT */
/* Applies the items of a trace, in time order, to a model: what each verb means. */
#pragma once

#include "analyzer/model/state/model.h"

/* Borrows header and definitions. sl_replay_blank: a model that is filled by other means, to which nothing can be applied. */
struct sl_model *sl_replay_blank(const struct sl_header *header, const struct sl_defs *defs);
struct sl_model *sl_replay_new(const struct sl_header *header, const struct sl_defs *defs);
void sl_replay_free(struct sl_model *model);

/* To be called before the first item: takes in the totals of folded files. */
void sl_replay_folded(struct sl_model *model, const struct sl_folded *folded);

void sl_replay_apply(struct sl_model *model, const struct sl_item *item);

/* To be called after the last item: closes lines and ranges. */
void sl_replay_end(struct sl_model *model);
/* Called if the program did not end well: then a smaller size that another function got after an error was not enough. */
void sl_replay_failed(struct sl_model *model);

/*
 * Frees what only the replay and analyses of a single process need: live blocks, threads, courses of tracks. lives: keep
 * model->lives.
 */
void sl_replay_rest(struct sl_model *model, bool lives);
