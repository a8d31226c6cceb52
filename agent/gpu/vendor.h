/* SPDX-License-Identifier: MIT */
/*
 * Asks the driver (CUDA) or the runtime (HIP) about devices, through the real functions, which are found once without the loader's
 * lock.  None makes a context.  For a thread that is inside the agent (sl_agent_begin), after a real call of the family has
 * returned.
 *
 * HIP before 7 forgets a pending error (hipGetLastError) at the next call that succeeds, so while one is pending HIP is not asked:
 * the answers are then "unknown", or the thread's last known device.  CUDA's driver has no such state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/event.h"

/* Families belong to two vendors: the runtime and the driver of CUDA number the same devices. */
enum sl_vendor { SL_VENDOR_CUDA, SL_VENDOR_HIP, SL_VENDOR_COUNT };

static inline enum sl_vendor sl_vendor_of(enum sl_family family)
{
	return family == SL_FAMILY_hip || family == SL_FAMILY_hsa ? SL_VENDOR_HIP : SL_VENDOR_CUDA;
}

struct sl_vendor_context {
	int device;	  /* its ordinal; -1 unknown */
	uint64_t context; /* 0 unknown */
};

struct sl_vendor_device {
	char name[128], uuid[48], pci[32]; /* "" unknown; uuid as NVML and rocm-smi write it, MIG-... for a MIG instance */
	uint64_t total_bytes;		   /* 0 unknown */
	bool integrated;		   /* it has no memory of its own: the host's is its memory (GB10, Jetson, APUs) */
};
unsigned sl_vendor_devices(enum sl_vendor vendor); /* number of devices that the process sees; 0 unknown */
bool sl_vendor_integrated(enum sl_vendor vendor, int ordinal);
void sl_vendor_describe(enum sl_vendor vendor, int ordinal, struct sl_vendor_device *device);

/* A context ends, or did so unseen: its handle may be another's. */
void sl_vendor_forget(void);

/* Device of the calling thread. */
struct sl_vendor_context sl_vendor_current(enum sl_vendor vendor);
int sl_vendor_device_of(enum sl_vendor vendor, uint64_t address);

/* Size of the allocation that begins at this address; 0 unknown. */
uint64_t sl_vendor_size_of(enum sl_vendor vendor, uint64_t address);

/* A capture of CUDA's has begun in this process: before, no stream is asked whether it is captured. */
extern _Atomic bool sl_vendor_captures;

/* The stream is being captured: an allocation on it is a node of *graph (0 unknown). */
bool sl_vendor_capturing(enum sl_vendor vendor, uint64_t stream, uint64_t *graph);

/* Memory of the current context's device; safe during stream capture.  False: it cannot be asked now. */
bool sl_vendor_memory(enum sl_vendor vendor, uint64_t *free_bytes, uint64_t *total_bytes);
