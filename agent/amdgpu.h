/* SPDX-License-Identifier: MIT */
/* Device memory of all processes together as AMD's kernel driver tells it in sysfs: no library, any thread. */
#ifndef AGENT_AMDGPU_H
#define AGENT_AMDGPU_H

#include <stdbool.h>
#include <stdint.h>

/* pci: "0000:03:00.0", either case.  False: there is no such device, or another driver's. */
bool sl_amdgpu_memory(const char *pci, uint64_t *used_bytes, uint64_t *total_bytes);

#endif
