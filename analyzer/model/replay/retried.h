/* SPDX-License-Identifier: MIT */
/*
 * Whether a program got over a request that had failed: by the same request again, with less, with as much from another call, or
 * by passing over what was too large.
 */
#pragma once

#include "analyzer/model/counts/sample_wait.h"
#include "analyzer/model/replay/replay.h"

/* True: the item asks for the same as the failed request. */
bool sl_retried_same(const struct sl_oom *oom, const struct sl_item *item);

/* An allocation has ended: is it an earlier request that failed? */
void sl_retried_settle(struct sl_model *model, const struct sl_item *item, bool failed);

/* An allocation has succeeded, in place of one that failed before. */
void sl_retried_look(struct sl_model *model, const struct sl_item *item);

/*
 * Finds errors that were got over with less: after one or more failures the place asked for less, of the same order, and got it; or
 * another line of the function asked for far less.
 */
void sl_retried_with_less(struct sl_model *model, const struct sl_item *item);
