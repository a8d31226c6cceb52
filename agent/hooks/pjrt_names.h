/* SPDX-License-Identifier: MIT */
/*
 * Names of PJRT's arrays.  To write a shape as text costs more than the rest of an event; programs have few shapes, so names
 * are kept.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SL_PJRT_RANK_MAX 6 /* arrays with more dimensions have their names made each time */

/* Everything that a name is made of.  Unused dimensions are 0. */
struct sl_pjrt_key {
	uint64_t origin; /* one number for each host origin, and for each output of each executable */
	uint64_t bytes;
	uint32_t type, rank;
	int64_t dims[SL_PJRT_RANK_MAX];
};

/* The name's id in this recording; 0: not known yet. */
uint32_t sl_pjrt_name(const struct sl_pjrt_key *key);
/* Keeps the id for this name. */
void sl_pjrt_name_keep(const struct sl_pjrt_key *key, uint32_t id);
