/* SPDX-License-Identifier: MIT */
/* PyTorch's allocator, for rows of other tables. */
#ifndef AGENT_HOOKS_TORCH_H
#define AGENT_HOOKS_TORCH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/hooks/ids.h"
#include "common/base.h"

/* Bounds of the code of the library that reports CUDA blocks; end 0: none has reported yet. */
extern struct sl_torch_code {
	uintptr_t begin, bytes;
} sl_torch_code SL_HIDDEN;

void sl_torch_event_seen(unsigned api, uint64_t event);

/* Who asks for free memory is PyTorch's allocator while the program sets its memory fraction, which is recorded (up to 2.9). */
bool sl_torch_sets_fraction(enum sl_family family, const void *caller);

/* A call succeeded that has to do with an event: of the allocator's own it is recorded.  Any thread. */
static inline void sl_torch_event(unsigned api, uint64_t event, const void *caller)
{
	if (SL_UNLIKELY((uintptr_t)caller - __atomic_load_n(&sl_torch_code.begin, __ATOMIC_RELAXED) <
			__atomic_load_n(&sl_torch_code.bytes, __ATOMIC_RELAXED)))
		sl_torch_event_seen(api, event);
}

#endif
