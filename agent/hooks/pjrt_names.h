/* SPDX-License-Identifier: MIT */
/* What arrays of PJRT are called: the text of a shape costs more than all else of an event, and programs have few shapes. */
#ifndef AGENT_HOOKS_PJRT_NAMES_H
#define AGENT_HOOKS_PJRT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define SL_PJRT_RANK_MAX 6 /* arrays of more dimensions have their names made each time */

/* All that a name is made of.  Unused dimensions are 0. */
struct sl_pjrt_key {
	uint64_t origin; /* a number for "host" and its kin, and for each output of each executable */
	uint64_t bytes;
	uint32_t type, rank;
	int64_t dims[SL_PJRT_RANK_MAX];
};

/* The name's id in this recording; 0: it is not known yet. */
uint32_t sl_pjrt_name(const struct sl_pjrt_key *key);
/* From now on that is what it is called. */
void sl_pjrt_name_keep(const struct sl_pjrt_key *key, uint32_t id);

#endif
