/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/model/state/model.h"

/* Visits each live block; physical memory is one block, with address 0, as an array.  To be called before sl_replay_rest. */
void sl_between_each(const struct sl_model *model, void *context,
		     void (*take)(void *context, uint64_t address, uint32_t site, uint64_t bytes, uint64_t born_ns));

/* Fills model->born with the live blocks that began after since_ns (0: with all).  To be called before sl_replay_rest. */
void sl_between_born(struct sl_model *model, uint64_t since_ns);
