/* SPDX-License-Identifier: MIT */
/* The most since any boundary: what the most was between two of them is kept only where nothing later was more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_crest {
	uint64_t order; /* of the boundary at its end */
	int64_t value;
};

struct sl_crests {
	struct sl_crest *item; /* each less than the one before it */
	size_t count, capacity;
};
