/* SPDX-License-Identifier: MIT */
/* Entry of every driver function: takes the lock, then checks what the call requires. */
#include "sim.h"

int sim_enter(struct sim_call *call)
{
	int error = SIM_OK;
	sim_call_open(call);
	sim_lock();
	if (call->needs < 2 && !sim_process.initialized)
		error = SIM_NOT_INITIALIZED;
	else if (call->needs < 1)
		error = sim_ctx_check_current(&call->ctx);
	/* A failed allocation counts for the current device; virtual and graph memory name a device themselves. */
	bool here = call->kind != SIM_KIND_NONE && call->kind != SIM_KIND_VMM && call->kind != SIM_KIND_GRAPH &&
		    call->kind < SIM_KIND_HOST_PINNED;
	if (!error && here && call->ctx && call->api->verb == SIM_ALLOC)
		call->device = call->ctx->device;
	if (!call->result) /* an injected error has priority */
		call->result = error;
	return call->result;
}

int sim_leave(struct sim_call *call, int result)
{
	sim_unlock();
	return sim_call_close(call, result);
}
