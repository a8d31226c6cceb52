/* SPDX-License-Identifier: MIT */
/* The stack of a call, as the definitions of its trace number it; symbols/stacks.h makes frames of it. */
#pragma once

#include <stdbool.h>

#include "analyzer/base/map.h"
#include "common/event.h"

/* All 0: unknown. */
struct sl_stack {
	uint64_t caller; /* the address that the call returned to */
	uint32_t python, native;
};

static inline struct sl_stack sl_stack_of(const struct sl_event *event)
{
	return (struct sl_stack){event->caller, (uint32_t)event->python, (uint32_t)event->native};
}

static inline bool sl_stack_same(struct sl_stack a, struct sl_stack b)
{
	return a.caller == b.caller && a.python == b.python && a.native == b.native;
}

static inline bool sl_stack_known(struct sl_stack stack)
{
	return stack.caller || stack.python || stack.native;
}

static inline uint64_t sl_stack_mix(struct sl_stack stack)
{
	return sl_map_mix_two(stack.caller, (uint64_t)stack.python << 32 | stack.native);
}
