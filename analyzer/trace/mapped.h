/* SPDX-License-Identifier: MIT */
/*
 * Says which object lies at an address of a traced process at one moment.  An object that comes where another one was gets
 * addresses of its own: their upper bits count the objects that moved before it.  So an address means one thing in a trace.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/vector.h"

#define SL_MAPPED_BITS	48     /* of an address as the process had it */
#define SL_MAPPED_MOVED 0x7fff /* as many can move; a place with this number has nothing any more */
#define SL_MAPPED_MAX	16384  /* what comes later belongs to nobody */

/* The address as the process had it. */
#define SL_MAPPED_REAL(address) ((address) & ((1ull << SL_MAPPED_BITS) - 1))

struct sl_mapped_range {
	uint64_t begin, end;
	uint32_t object; /* the caller's number for what is there */
	uint32_t moved;	 /* 0: its addresses are as the process had them */
};

/* Sorted, without overlap; all zeroes is an empty one.  The owner frees .item. */
struct sl_mapped {
	SL_VECTOR(struct sl_mapped_range) list;
};

/* True: something else is at some of its addresses, or was there last. */
bool sl_mapped_taken(const struct sl_mapped *mapped, const struct sl_mapped_range *place);

/* Puts `place`, and cuts away what overlapped it. */
void sl_mapped_put(struct sl_mapped *mapped, const struct sl_mapped_range *place);

/* The address as the trace means it. */
uint64_t sl_mapped_address(const struct sl_mapped *mapped, uint64_t address);
