/* SPDX-License-Identifier: MIT */
/* The ranks that are recorded, as STORMLOG_RANKS has them: a list like "0,2,4-7".  Nothing is allocated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* True: the list is well-formed. */
bool sl_ranks_valid(const char *list);

/* True: the list has the rank.  *until (may be NULL) gets the next rank at which the answer may change, or UINT64_MAX. */
bool sl_ranks_has(const char *list, uint64_t rank, uint64_t *until);
