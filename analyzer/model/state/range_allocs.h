/* SPDX-License-Identifier: MIT */
/* What was allocated inside an open range, by site; kept if model->makers is set. */
#pragma once

#include "analyzer/trace/idmap.h"
#include "analyzer/base/vector.h"

/* What one site allocated, freed since or not. */
struct sl_made {
	uint32_t site;
	uint64_t bytes, blocks;
};

struct sl_making {
	SL_VECTOR(struct sl_made) made;
	struct sl_idmap at; /* site -> index of `made` */
};

void sl_range_allocs_add(struct sl_making *making, uint32_t site, uint64_t bytes);
void sl_range_allocs_drop(struct sl_making *making);
