/* SPDX-License-Identifier: MIT */
#include "common/tracefile.h"

#include "common/fnv.h"

uint64_t sl_frame_index_check(const struct sl_frame_index *index)
{
	return sl_fnv_bytes(SL_FNV_START, index, offsetof(struct sl_frame_index, check));
}

bool sl_frame_index_valid(const void *at, size_t bytes)
{
	struct sl_frame_index index;

	if (bytes < sizeof(index))
		return false;
	memcpy(&index, at, sizeof(index));
	return index.magic == SL_FRAME_MAGIC && index.size == sizeof(index) - 8 && index.check == sl_frame_index_check(&index);
}
