/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/model/state/model.h"

/* Called when an entry of a range begins: notes it if it is sought. step: its number, -1: none. */
void sl_between_entry(struct sl_model *model, const struct sl_event *event, int64_t step);

/* When the sought entry began: the N-th entry of the label, else the entry of LABEL# with the number N. 0: there is none. */
uint64_t sl_between_sought(const struct sl_sought *sought);

/* Visits each live block; physical memory is one block, with address 0, as an array.  To be called before sl_replay_rest. */
void sl_between_each(const struct sl_model *model, void *context,
		     void (*take)(void *context, uint64_t address, uint32_t site, uint64_t bytes, uint64_t born_ns));

/* Fills model->born with the live blocks that began after since_ns (0: with all).  To be called before sl_replay_rest. */
void sl_between_born(struct sl_model *model, uint64_t since_ns);
