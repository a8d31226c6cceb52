/* SPDX-License-Identifier: MIT */
/* From the entry of a function to its return: the referee's journal, injected errors and poison (tests/sim/call.c) are not here. */
#include "tests/sim/sim.h"

void sim_call_open(struct sim_call *call)
{
	sim_process_check();
	call->result = SIM_OK;
}

int sim_call_close(struct sim_call *call, int result)
{
	return call->result = result;
}

void sim_call_drop_outer(void)
{
}

void sim_journal_forget(void)
{
}

void sim_journal_effect(struct sim_call *call, enum sim_effect effect, enum sim_kind kind, int device, uint64_t address,
			uint64_t bytes)
{
}
