/* SPDX-License-Identifier: MIT */
/* The door of every driver function: the lock, then what the call needs to be allowed at all. */
#include "sim.h"

int sim_enter(struct sim_call *call)
{
	sim_call_open(call);
	sim_lock();
	if (call->result)
		return call->result;
	if (call->needs < 2 && !sim_process.initialized)
		return call->result = SIM_NOT_INITIALIZED;
	if (call->needs < 1)
		call->result = sim_ctx_check_current(&call->ctx);
	return call->result;
}

int sim_leave(struct sim_call *call, int result)
{
	sim_unlock();
	return sim_call_close(call, result);
}
