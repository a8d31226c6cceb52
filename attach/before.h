/* SPDX-License-Identifier: MIT */
/* What a process holds when it is attached to: nobody saw it being allocated, and NVML knows how much it is. */
#ifndef ATTACH_BEFORE_H
#define ATTACH_BEFORE_H

#include <stdbool.h>
#include <stdint.h>

/* What it holds on all devices, contexts included.  False: no NVML here, or it does not list the process. */
bool sl_before_bytes(long pid, uint64_t *bytes);

#endif
