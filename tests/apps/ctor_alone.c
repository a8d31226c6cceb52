/* SPDX-License-Identifier: MIT */
/* A library to preload, whose constructor makes the program's first GPU call: one allocation that stays. */
#include "gpu.h"

__attribute__((constructor)) static void construct(void)
{
	static void *kept;

	OK(cudaMalloc(&kept, 4096));
}
