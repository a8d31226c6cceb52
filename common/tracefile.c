/* SPDX-License-Identifier: MIT */
#include "common/tracefile.h"

#include <string.h>

uint64_t sl_frame_check(const struct sl_frame_index *index)
{
	const uint8_t *at = (const uint8_t *)index;
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < offsetof(struct sl_frame_index, check); i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return hash;
}

bool sl_frame_valid(const void *at, size_t bytes)
{
	struct sl_frame_index index;

	if (bytes < sizeof(index))
		return false;
	memcpy(&index, at, sizeof(index));
	return index.magic == SL_FRAME_MAGIC && index.size == sizeof(index) - 8 && index.check == sl_frame_check(&index);
}
