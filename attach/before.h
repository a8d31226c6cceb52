/* SPDX-License-Identifier: MIT */
/* What a process already holds when it is attached to.  Those allocations were not seen; NVML knows their sum. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes that the process holds on all devices, contexts included.  False: no NVML here, or it does not list the process. */
bool sl_before_bytes(long pid, uint64_t *bytes);
