/* SPDX-License-Identifier: MIT */
/* One reading of a device's memory, and of each process's part, by a source that sees all processes: NVML or AMD's driver. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_SAMPLE_PROCESSES 64

struct sl_device_sample {
	/* used: by all processes, without reserved memory if the source distinguishes it */
	uint64_t total_bytes, free_bytes, used_bytes;
	bool has_processes; /* the list below is complete, or full, and its pids are of our namespace */
	bool full;	    /* there were more processes than fit */
	unsigned count;
	struct {
		uint64_t pid, bytes;
	} processes[SL_SAMPLE_PROCESSES]; /* processes whose bytes are known */
	uint64_t own_bytes;		  /* bytes of this process; 0: unknown */
};

/* Adds a process, where there is room. */
void sl_sample_add(struct sl_device_sample *sample, uint64_t pid, uint64_t bytes);

/* Called when the list is complete: decides whether its pids are of our namespace, and which one is ours. */
void sl_sample_listed(struct sl_device_sample *sample);
