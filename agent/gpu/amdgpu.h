/* SPDX-License-Identifier: MIT */
/*
 * Memory of an AMD device from sysfs: amdgpu's mem_info_vram_* of the PCI device, and what each process holds of it in KFD's
 * folders (Linux 5.9). No library, no context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/gpu/sample.h"

/* Finds the device with that PCI id; false: the kernel does not show it. */
bool sl_amdgpu_memory(const char *pci, uint64_t *used_bytes, uint64_t *total_bytes);

/* KFD's number of the device with that PCI id; 0: it has none. */
uint64_t sl_amdgpu_kfd(const char *pci);

/* kfd 0: without its processes.  Writer thread. */
bool sl_amdgpu_sample(const char *pci, uint64_t kfd, struct sl_device_sample *sample);
