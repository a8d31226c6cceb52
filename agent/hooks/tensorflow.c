/* SPDX-License-Identifier: MIT */
/*
 * Records blocks of TensorFlow's allocator.  Its functions are virtual and exported; vtables refer to them by symbol, so calls
 * come here.  Only arguments are read.  The analyzer finds a block's device by its address.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/hooks/ids.h"
#include "agent/hooks/torch.h"
#include "agent/preload.h"
#include "agent/record.h"
#include "agent/symbols/objects.h"
#include "agent/symbols/resolve.h"

#define EXPORTED_AS(symbol) __asm__(symbol) __attribute__((visibility("default")))

/* Host memory of TensorFlow alone does not begin a recording. */
static inline bool is_wanted(void)
{
	return (atomic_load_explicit(&sl_agent->generation, memory_order_relaxed) || sl_torch_wants_cpu()) &&
	       sl_preload_running() && sl_agent->options.tensors != SL_TENSORS_OFF;
}

static void *real_of(_Atomic uint64_t *kept, const char *symbol, const void *caller)
{
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);
	void *function = sl_objects_kept(kept, unloads);

	if (SL_UNLIKELY(!function)) {
		function = sl_resolve_for(symbol, caller);
		sl_objects_keep(kept, function, unloads);
	}
	return function;
}

/* AllocateRaw(size_t alignment, size_t bytes, const AllocationAttributes &) and DeallocateRaw(void *) of one namespace. */
#define ALLOCATOR(name, space)                                                                                                     \
	void *name##_allocate(void *, uint64_t, uint64_t, const void *)                                                            \
		EXPORTED_AS("_ZN" space "12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE");                             \
	void *name##_allocate(void *self, uint64_t alignment, uint64_t bytes, const void *attributes)                              \
	{                                                                                                                          \
		static _Atomic uint64_t kept;                                                                                      \
		void *(*real)(void *, uint64_t, uint64_t, const void *) =                                                          \
			real_of(&kept, "_ZN" space "12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE",                   \
				__builtin_return_address(0));                                                                      \
		void *block = real ? real(self, alignment, bytes, attributes) : NULL;                                              \
                                                                                                                                   \
		if (block && is_wanted())                                                                                          \
			sl_record_block(SL_API_bfc_alloc, (uintptr_t)block, bytes, -1, 0, 0, NULL, 0);                             \
		return block;                                                                                                      \
	}                                                                                                                          \
	void name##_free(void *, void *) EXPORTED_AS("_ZN" space "12BFCAllocator13DeallocateRawEPv");                              \
	void name##_free(void *self, void *block)                                                                                  \
	{                                                                                                                          \
		static _Atomic uint64_t kept;                                                                                      \
		void (*real)(void *, void *) =                                                                                     \
			real_of(&kept, "_ZN" space "12BFCAllocator13DeallocateRawEPv", __builtin_return_address(0));               \
                                                                                                                                   \
		if (block && is_wanted())                                                                                          \
			sl_record_block(SL_API_bfc_free, (uintptr_t)block, 0, -1, 0, 0, NULL, 0);                                  \
		if (real)                                                                                                          \
			real(self, block);                                                                                         \
	}

ALLOCATOR(tsl, "3tsl")		      /* 2.9 on */
ALLOCATOR(tensorflow, "10tensorflow") /* before */
