/* SPDX-License-Identifier: MIT */
/*
 * Every export that no other file defines, weak: SIM_FAIL can make it fail, and it ignores its arguments. Those in
 * `succeeds` return success, because programs need it; all others return "not supported".
 */
#include "sim.h"

#include <string.h>

static const char *const succeeds[] = {
	"cuCtxDisablePeerAccess",
	"cuCtxEnablePeerAccess",
	"cuCtxResetPersistingL2Cache",
	"cuCtxSetCacheConfig",
	"cuCtxSetFlags",
	"cuCtxSetSharedMemConfig",
	"cuDevicePrimaryCtxSetFlags",
	"cuEventRecordWithFlags",
	"cuFuncLoad",
	"cuFuncSetAttribute",
	"cuFuncSetCacheConfig",
	"cuFuncSetSharedMemConfig",
	"cuKernelSetAttribute",
	"cuKernelSetCacheConfig",
	"cuMemAdvise",
	"cuMemDiscardBatchAsync",
	"cuMemMapArrayAsync",
	"cuMemPrefetchAsync",
	"cuMemPrefetchBatchAsync",
	"cuPointerSetAttribute",
	"cuProfilerStart",
	"cuProfilerStop",
	"cuStreamAttachMemAsync",
	"cuStreamWaitEvent",
	"cuThreadExchangeStreamCaptureMode",
	"cuGraphUpload",
};

/* Whether `name` is in `succeeds`, or is a version or per-thread variant of such a name. */
static bool is_one(const char *name)
{
	for (size_t i = 0; i < SIM_ARRAY_SIZE(succeeds); i++) {
		size_t n = strlen(succeeds[i]);
		if (!strncmp(name, succeeds[i], n) && (!name[n] || !strncmp(name + n, "_v", 2) || !strncmp(name + n, "_pt", 3)))
			return true;
	}
	return false;
}

static int stub(struct sim_api *api)
{
	struct sim_call call = {.api = api, .device = -1, .needs = 2};
	sim_call_open(&call);
	return sim_call_close(&call, call.result ? call.result : is_one(api->name) ? SIM_OK : SIM_NOT_SUPPORTED);
}

#define SIM_NAME(asked, since, flag, export)                                                                                       \
	__attribute__((weak)) int export(void)                                                                                     \
	{                                                                                                                          \
		static struct sim_api api = {.name = #export};                                                                     \
		return stub(&api);                                                                                                 \
	}
#include "driver_names.def"
