/* SPDX-License-Identifier: MIT */
/* PyTorch's allocator, for rows of other tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/process/hook_rows.h"
#include "common/base.h"

/* Bounds of the code of the library that reports CUDA blocks; end 0: none has reported yet. */
extern struct sl_torch_code {
	uintptr_t begin, bytes;
} sl_torch_code SL_HIDDEN;

void sl_torch_event_seen(unsigned api, uint64_t event);

/* True: PyTorch's allocator (up to 2.9) asks for free memory because the program sets its memory fraction, which is recorded. */
bool sl_torch_sets_fraction(enum sl_family family, const void *caller);

/* After a call about an event succeeded: records it if PyTorch's allocator made the call.  Any thread. */
static inline void sl_torch_event(unsigned api, uint64_t event, const void *caller)
{
	if (SL_UNLIKELY((uintptr_t)caller - __atomic_load_n(&sl_torch_code.begin, __ATOMIC_RELAXED) <
			__atomic_load_n(&sl_torch_code.bytes, __ATOMIC_RELAXED)))
		sl_torch_event_seen(api, event);
}
