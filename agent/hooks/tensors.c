/* SPDX-License-Identifier: MIT */
#include "agent/hooks/parts.h"

#include <stdlib.h>

/*
 * --tensors cpu.  Asked before there is a recording: PyTorch decides with its first tensor whether it keeps the sizes of CPU
 * blocks, and warns when it has not.
 */
bool sl_tensors_of_cpu(void)
{
	static atomic_int cached; /* 1 no, 2 yes */
	int answer = atomic_load_explicit(&cached, memory_order_relaxed);

	if (SL_UNLIKELY(!answer)) {
		const char *tensors = sl_options_variable("STORMLOG_TENSORS");

		answer = tensors && !strcmp(tensors, "cpu") ? 2 : 1;
		atomic_store_explicit(&cached, answer, memory_order_relaxed);
	}
	return answer == 2;
}
