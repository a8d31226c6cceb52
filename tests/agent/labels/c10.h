/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for PyTorch's libraries, in C under the mangled names: FLAVOUR 1 is 1.6 to 1.9, 2 is 1.10 to 2.0,
 * 3 is later, 4 the names between them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* c10::Device */
struct device {
	int8_t type, index;
};

#if FLAVOUR == 1
#define REPORT_NAME "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE"
#define TOTALS
#define TOTALS_OF(allocated, reserved)
#else
#define TOTALS			       uint64_t allocated, uint64_t reserved,
#define TOTALS_OF(allocated, reserved) allocated, reserved,
#endif
#if FLAVOUR == 2
#define REPORT_NAME "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define OOM_NAME    "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"
#elif FLAVOUR == 3
#define REPORT_NAME "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define OOM_NAME    "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#elif FLAVOUR == 4
#define REPORT_NAME "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define OOM_NAME    "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE"
#endif

void report(void *block, int64_t size, TOTALS struct device device) __asm__(REPORT_NAME);
#ifdef OOM_NAME
void out_of_memory(uint64_t size, uint64_t allocated, uint64_t reserved, struct device device) __asm__(OOM_NAME);
#endif
bool profiling(void) __asm__("_ZN3c1022memoryProfilingEnabledEv");

/* What reached the real functions: reports, out of memory, and a sum of all their arguments. */
extern uint64_t c10_seen[3];
