/* SPDX-License-Identifier: MIT */
#include "analyzer/model/state/model.h"

void sl_range_allocs_add(struct sl_making *making, uint32_t site, uint64_t bytes)
{
	uint32_t at = sl_idmap_claim(&making->at, site, making->made.count);

	if (at == making->made.count)
		*SL_PUSH(&making->made) = (struct sl_made){.site = site};
	making->made.item[at].bytes += bytes;
	making->made.item[at].blocks++;
}

void sl_range_allocs_drop(struct sl_making *making)
{
	SL_DROP(&making->made);
	sl_idmap_free(&making->at);
}
