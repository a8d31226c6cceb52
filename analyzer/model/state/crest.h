/* SPDX-License-Identifier: MIT */
/* The highest value since any earlier boundary.  The maximum between two boundaries is dropped once a later one is higher. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_crest {
	uint64_t order; /* number of the boundary at its end */
	int64_t value;
};

struct sl_crests {
	struct sl_crest *item; /* each lower than the one before it */
	size_t count, capacity;
};
