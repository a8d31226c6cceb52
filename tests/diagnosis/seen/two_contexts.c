/* SPDX-License-Identifier: MIT */
/* A context for the calculation and one for the display, and a third that comes and goes with each picture that is saved. */
#include "../../apps/gpu.h"

static void *context_new(void)
{
	void *context;
	OK(cuCtxCreate_v2(&context, 0, 0));
	return context;
}

int main(void)
{
	address fields, frame, copy;
	OK(cuInit(0));
	void *calculation = context_new();
	OK(cuMemAlloc_v2(&fields, 120 * MB));
	void *display = context_new();
	OK(cuMemAlloc_v2(&frame, 8 * MB));
	for (int i = 0; i < 40; i++) {
		void *saving = context_new();
		OK(cuMemAlloc_v2(&copy, 8 * MB));
		OK(cuMemFree_v2(copy));
		OK(cuCtxDestroy_v2(saving));
	}
	OK(cuCtxDestroy_v2(display));
	OK(cuCtxDestroy_v2(calculation));
	return 0;
}
