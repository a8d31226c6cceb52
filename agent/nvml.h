/* SPDX-License-Identifier: MIT */
/*
 * Device memory as NVIDIA's management library sees it: all processes together, and each.  Writer thread only: it
 * opens libnvidia-ml.so.1 (RTLD_LAZY | RTLD_LOCAL).  NVML makes no context.
 */
#ifndef AGENT_NVML_H
#define AGENT_NVML_H

#include <stdbool.h>
#include <stdint.h>

#define SL_NVML_PROCESSES 64

struct sl_nvml_device;

struct sl_nvml_sample {
	uint64_t total_bytes, free_bytes, used_bytes; /* used: by all processes and, where NVML tells it apart, not what is reserved */
	bool has_processes;			      /* the list below is whole and its pids mean something */
	unsigned count;
	struct {
		uint64_t pid, bytes;
	} processes[SL_NVML_PROCESSES]; /* those whose bytes are known */
	uint64_t own_bytes;		/* of this process; 0: unknown */
};

/* NULL: NVML works here; else why it does not, in a few words.  Tried once. */
const char *sl_nvml_open(void);

/* The device of that uuid ("GPU-...", "MIG-...") or PCI id; NULL: NVML does not know it. */
struct sl_nvml_device *sl_nvml_find(const char *uuid, const char *pci);

bool sl_nvml_sample(struct sl_nvml_device *device, struct sl_nvml_sample *sample);

#endif
