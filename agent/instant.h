/* SPDX-License-Identifier: MIT */
/* An event that happens at an instant and has nothing to return: ranges and marks. */
#pragma once

#include <stdint.h>

struct sl_instant_details {
	uint64_t address;  /* of the memory, the buffer or the communicator that it is about; 0: of none */
	uint64_t bytes;	   /* of that memory, or of the collective's message */
	uint64_t numbered; /* one more than the number of a range whose `extra` is an id; 0: nothing */
	uint64_t time_ns;  /* of an event that is told later than it counts; 0: now */
};

void sl_instant_record(unsigned api, uint32_t label, uint64_t extra, struct sl_instant_details details);
