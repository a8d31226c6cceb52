/* SPDX-License-Identifier: MIT */
/* An event that happens at an instant and has nothing to return: ranges and marks. */
#pragma once

#include <stdint.h>

struct sl_instant_details {
	uint64_t address;  /* address of the memory, buffer or communicator that the event is about; 0: none */
	uint64_t bytes;	   /* size of that memory, or of the collective's message */
	uint64_t numbered; /* 1 + the index of the label of a range whose `extra` is an id; 0: none */
	uint64_t time_ns;  /* the event's time, if it is recorded later; 0: now */
};

void sl_instant_record(unsigned api, uint32_t label, uint64_t extra, struct sl_instant_details details);
