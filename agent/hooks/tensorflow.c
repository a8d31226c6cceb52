/* SPDX-License-Identifier: MIT */
/*
 * Records blocks of TensorFlow's allocator.  Its functions are virtual and exported; vtables refer to them by symbol, so calls
 * come here.  Only arguments are read, and the op that asks (tensorflow_op.c).  The analyzer finds a block's device by its address.
 */

#include "agent/hooks/parts.h"
#include "agent/symbols/symbols.h"

#define EXPORTED_AS(symbol) __asm__(symbol) __attribute__((visibility("default")))

/* A function of the allocator.  twin: its counterpart; of a library that lacks it no block would end, so none is recorded. */
struct function {
	_Atomic uint64_t kept;
	atomic_bool alone;
	const char *symbol, *twin;
};

static void *real_of(struct function *function, const void *caller)
{
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);
	void *real = sl_objects_kept(&function->kept, unloads);

	if (SL_UNLIKELY(!real)) {
		real = sl_resolve_for(function->symbol, caller);
		atomic_store(&function->alone, !sl_resolve_beside(real, function->twin));
		if (atomic_load(&function->alone))
			sl_objects_hole(SL_HOLE_TENSORFLOW);
		sl_objects_keep(&function->kept, real, unloads);
	}
	return real;
}

static inline bool is_told(const struct function *function)
{
	return sl_tensors_wanted_anywhere() && SL_LIKELY(!atomic_load_explicit(&function->alone, memory_order_relaxed));
}

/* AllocateRaw(size_t alignment, size_t bytes, const AllocationAttributes &) and DeallocateRaw(void *) of one namespace. */
#define ALLOCATOR(name, space)                                                                                                     \
	void *name##_allocate(void *, uint64_t, uint64_t, const void *) EXPORTED_AS(SL_TENSORFLOW_ALLOCATE(space));                \
	void *name##_allocate(void *self, uint64_t alignment, uint64_t bytes, const void *attributes)                              \
	{                                                                                                                          \
		static struct function here = {.symbol = SL_TENSORFLOW_ALLOCATE(space), .twin = SL_TENSORFLOW_FREE(space)};        \
		void *(*real)(void *, uint64_t, uint64_t, const void *) = real_of(&here, __builtin_return_address(0));             \
		void *block = real ? real(self, alignment, bytes, attributes) : NULL;                                              \
                                                                                                                                   \
		if (block && is_told(&here))                                                                                       \
			sl_record_block(SL_API_bfc_alloc, (uintptr_t)block, bytes, -1, 0, 0, NULL,                                 \
					sl_tensorflow_op((const void *)real));                                                     \
		return block;                                                                                                      \
	}                                                                                                                          \
	void name##_free(void *, void *) EXPORTED_AS(SL_TENSORFLOW_FREE(space));                                                   \
	void name##_free(void *self, void *block)                                                                                  \
	{                                                                                                                          \
		static struct function here = {.symbol = SL_TENSORFLOW_FREE(space), .twin = SL_TENSORFLOW_ALLOCATE(space)};        \
		void (*real)(void *, void *) = real_of(&here, __builtin_return_address(0));                                        \
                                                                                                                                   \
		if (block && is_told(&here))                                                                                       \
			sl_record_block(SL_API_bfc_free, (uintptr_t)block, 0, -1, 0, 0, NULL, 0);                                  \
		if (real)                                                                                                          \
			real(self, block);                                                                                         \
	}

ALLOCATOR(tsl, "3tsl")		      /* 2.9 on */
ALLOCATOR(tensorflow, "10tensorflow") /* before */
