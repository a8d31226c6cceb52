/* SPDX-License-Identifier: MIT */
/* Whether blocks of a framework's allocator are recorded (--tensors).  Asking may begin the recording. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/process/agent.h"
#include "agent/life/preload.h"

/* --tensors cpu; it is asked before there is a recording and does not begin one. */
bool sl_tensors_of_cpu(void);

static inline bool sl_tensors_wanted(void)
{
	return sl_preload_running() && sl_agent->options.tensors != SL_TENSORS_OFF;
}

/* The same for allocators that may be of host memory, which alone does not begin a recording. */
static inline bool sl_tensors_wanted_anywhere(void)
{
	return (atomic_load_explicit(&sl_agent->generation, memory_order_relaxed) || sl_tensors_of_cpu()) && sl_tensors_wanted();
}
