/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/model/model.h"

/* An entry of a range begins, its number `step`, -1: none; notes it if it is one of those sought. */
void sl_between_entry(struct sl_model *model, const struct sl_event *event, int64_t step);

/* When the entry sought began: the N-th entry of the label, else the one with that number of LABEL#; 0: there is none. */
uint64_t sl_between_sought(const struct sl_sought *sought);

/* Each block that lives now, physical memory as one block (its address is 0, as an array's); before sl_replay_rest. */
void sl_between_each(const struct sl_model *model, void *context,
		     void (*take)(void *context, uint64_t address, uint32_t site, uint64_t bytes, uint64_t born_ns));

/* Fills model->born with what lives now and began after since_ns (0: ever); before sl_replay_rest. */
void sl_between_born(struct sl_model *model, uint64_t since_ns);
