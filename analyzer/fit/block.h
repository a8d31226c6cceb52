/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/base/tree.h"

struct sl_fit_range;
struct sl_fit_pool;

/* A piece of a segment: allocated, waiting for its streams, free, or (expandable segments) without memory. */
struct sl_fit_block {
	struct sl_node node;		  /* links of the set it is in, or of the list of those that wait */
	struct sl_fit_block *prev, *next; /* neighbours in its segment */
	uint64_t address, bytes, requested;
	uint64_t age;		    /* decides between equal blocks before the address does; 0: not used */
	int64_t gc_base;	    /* the pool's count of searches when the block became free */
	struct sl_fit_range *range; /* the expandable segment; NULL: an ordinary one */
	struct sl_fit_pool *pool;   /* the set it is in while it is free */
	uint32_t id;		    /* while it waits: the caller's */
	uint16_t stream;
	bool small, allocated, pending, unmapped;
};
