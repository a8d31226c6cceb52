/* SPDX-License-Identifier: MIT */
/*
 * Device memory from NVIDIA's management library: of all processes together, and of each.  Writer thread only: it opens
 * libnvidia-ml.so.1 (RTLD_LAZY | RTLD_LOCAL). NVML makes no context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/gpu/sample.h"

struct sl_nvml_device;

/* Opens NVML, once.  NULL: it works; else why it does not, in a few words. */
const char *sl_nvml_open(void);

/* The device of that uuid ("GPU-...", "MIG-...") or PCI id; NULL: NVML does not know it. */
struct sl_nvml_device *sl_nvml_find(const char *uuid, const char *pci);

/*
 * Where NVML refuses the device's memory, total_bytes is 0 and only the processes are told.
 * A program that shuts NVML down more often than it has begun it ends it for us too: then it is begun again, at most once a second,
 * and *device found anew.
 */
bool sl_nvml_sample(struct sl_nvml_device **device, const char *uuid, const char *pci, struct sl_device_sample *sample);
