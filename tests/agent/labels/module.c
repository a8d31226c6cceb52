/* SPDX-License-Identifier: MIT */
/* A second object that includes NVTX, so with slots of its own. */
#include <nvtx3/nvToolsExt.h>

int module_push(const char *name);
int module_pop(void);

int module_push(const char *name)
{
	return nvtxRangePushA(name);
}

int module_pop(void)
{
	return nvtxRangePop();
}
