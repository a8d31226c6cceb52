/* SPDX-License-Identifier: MIT */
#include "sim.h"
int sim_graph_capture_alloc(struct sim_call *call, struct sim_graph *graph, int device, uint64_t bytes, uint64_t *out)
{
	return SIM_NOT_SUPPORTED;
}
int sim_graph_capture_free(struct sim_call *call, struct sim_graph *graph, uint64_t address)
{
	return SIM_NOT_SUPPORTED;
}
int sim_graph_free_block(struct sim_call *call, struct sim_block *block)
{
	sim_block_drop(block, call, SIM_EFFECT_FREE);
	return SIM_OK;
}
