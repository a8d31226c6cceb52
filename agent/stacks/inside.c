/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "agent/stacks/stacks.h"
#include "agent/stacks/walk.h"

_Atomic uintptr_t sl_stacks_inner_callers[SL_STACKS_INNER_CALLERS];

bool sl_stacks_find_inside(const void *frame, const void *caller)
{
	int saved = errno;
	bool inside = sl_walk_way_to(frame) != SL_WALK_ENTERED;

	errno = saved;
	if (inside)
		atomic_store_explicit(sl_stacks_inner_caller(caller), (uintptr_t)caller, memory_order_relaxed);
	return inside;
}
