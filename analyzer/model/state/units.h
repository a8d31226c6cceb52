/* SPDX-License-Identifier: MIT */
/* Drivers give memory out in units of 2 MiB; blocks of cudaMalloc below 1 MiB share them. */
#pragma once

#include "analyzer/model/state/model.h"

#define SL_DEVICE_UNIT (2ull << 20)

/* Bytes that a block of cudaMalloc takes beyond its size. */
static inline uint64_t sl_units_rounding(uint64_t bytes)
{
	return bytes >= SL_DEVICE_UNIT / 2 ? -bytes & (SL_DEVICE_UNIT - 1) : 0;
}

/* Bytes that the request would have taken on the device. */
static inline uint64_t sl_units_taken(const struct sl_oom *oom)
{
	uint64_t bytes = oom->padded_bytes > oom->asked_bytes ? oom->padded_bytes : oom->asked_bytes;

	return bytes + (oom->in_units ? sl_units_rounding(bytes) : 0);
}
