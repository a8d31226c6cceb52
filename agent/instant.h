/* SPDX-License-Identifier: MIT */
/* An event that happens at an instant and has nothing to return: ranges and marks. */
#ifndef AGENT_INSTANT_H
#define AGENT_INSTANT_H

#include <stdint.h>

/*
 * What NCCL says of a range of its own, one more than the number of a range whose `extra` is an id; 0: nothing.
 * time_ns: of an event that is told later than it counts; 0: now.
 */
struct sl_instant_collective {
	uint64_t communicator, bytes, numbered, time_ns;
};

void sl_instant_record(unsigned api, uint32_t label, uint64_t extra, struct sl_instant_collective collective);

#endif
