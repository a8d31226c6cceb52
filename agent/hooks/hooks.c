/* SPDX-License-Identifier: MIT */
/*
 * Wrappers, expanded from the rows of hooks/.  A row becomes one body, which does the work, and one entry for each instance.  The
 * entry is a few instructions: it calls the body with its number and its return address.
 *
 *	cudaMalloc (exported, instance 0), cudaMalloc__1 .. __3 (handed out by look-ups)  ->  cudaMalloc__body
 */

#include <limits.h>

#include "agent/hooks/fields.h"
#include "agent/hooks/prototype.h"

/* What a wrapper returns when no library provides the function: the interface's code for "not there". */
enum {
	ABSENT_cuda_runtime = 35, /* cudaErrorInsufficientDriver */
	ABSENT_cuda_driver = 3,	  /* CUDA_ERROR_NOT_INITIALIZED */
	ABSENT_hip = 100,	  /* hipErrorNoDevice */
	ABSENT_hsa = 0x100b,	  /* HSA_STATUS_ERROR_NOT_INITIALIZED */
	ABSENT_nccl = 2,	  /* ncclSystemError */
	ABSENT_nvml = 12,	  /* NVML_ERROR_LIBRARY_NOT_FOUND */
};

enum {
#define FAMILY(name, oom, help) OOM_##name = oom,
#include "common/events.def"
#undef FAMILY
};

/* The list with a comma behind it, or "" if it is empty. */
#define LIST(...) __VA_ARGS__ __VA_OPT__(, )

#define JOIN_(a, b)	a##b
#define JOIN(a, b)	JOIN_(a, b)
#define OF_FAMILY(what) JOIN(what, ROW_FAMILY)

/* Evaluates the row's fields at this moment. */
#define FILL(verb, kind_, name, ...) SL_FILL_FIELDS(fields, verb, kind_, name, __VA_ARGS__)

#define BODY(ret, name, proto) static __attribute__((noinline)) ret name##__body(LIST proto unsigned instance, const void *caller)
#define ENTRY		       __attribute__((section("sl_wrappers"), used))

#define INSTANCE(ret, name, proto, args, number)                                                                                   \
	static ENTRY ret name##__##number PROTOTYPE proto                                                                          \
	{                                                                                                                          \
		return name##__body(LIST args number, __builtin_return_address(0));                                                \
	}

#define ENTRIES(ret, name, proto, args)                                                                                            \
	__attribute__((visibility("default"))) ENTRY ret name PROTOTYPE proto;                                                     \
	ret name PROTOTYPE proto                                                                                                   \
	{                                                                                                                          \
		return name##__body(LIST args 0, __builtin_return_address(0));                                                     \
	}                                                                                                                          \
	INSTANCE(ret, name, proto, args, 1)                                                                                        \
	INSTANCE(ret, name, proto, args, 2)                                                                                        \
	INSTANCE(ret, name, proto, args, 3)

/* Makes the call, as an event. */
#define MADE_AND_RECORDED(verb, kind_, ret, name, args, ...)                                                                       \
	struct sl_fields fields;                                                                                                   \
	struct sl_frame frame;                                                                                                     \
	bool done = false;                                                                                                         \
	ret result;                                                                                                                \
                                                                                                                                   \
	if (SL_UNLIKELY(!real))                                                                                                    \
		return (ret)OF_FAMILY(ABSENT_);                                                                                    \
	(void)done;                                                                                                                \
	FILL(verb, kind_, name, __VA_ARGS__);                                                                                      \
	if (SL_UNLIKELY(!sl_record_open(&frame, SL_API_##name, caller, &fields)))                                                  \
		return real args;                                                                                                  \
	result = sl_record_refused(&frame) ? (ret)OF_FAMILY(OOM_) : real args;                                                     \
	done = result == 0;                                                                                                        \
	FILL(verb, kind_, name, __VA_ARGS__);                                                                                      \
	sl_record_close(&frame, result, done, &fields);                                                                            \
	return result

#define ROW(verb, kind_, ret, name, proto, args, ...)                                                                              \
	BODY(ret, name, proto)                                                                                                     \
	{                                                                                                                          \
		ret(*real) PROTOTYPE proto = sl_hooks_real(SL_API_##name, instance, caller);                                       \
		MADE_AND_RECORDED(verb, kind_, ret, name, args, __VA_ARGS__);                                                      \
	}                                                                                                                          \
	ENTRIES(ret, name, proto, args)

/* The first of such calls, and one that fails or has another answer than before, is an event. */
#define ONCE(verb, ret, name, proto, args, known_before, known_answer, ...)                                                        \
	static __attribute__((noinline)) ret name##__first(LIST proto const void *caller, ret(*real) PROTOTYPE proto)              \
	{                                                                                                                          \
		MADE_AND_RECORDED(verb, none, ret, name, args, __VA_ARGS__);                                                       \
	}                                                                                                                          \
	BODY(ret, name, proto)                                                                                                     \
	{                                                                                                                          \
		ret(*real) PROTOTYPE proto = sl_hooks_real(SL_API_##name, instance, caller);                                       \
		const bool is_known = real && (known_before) && SL_LIKELY(!sl_limit_active);                                       \
		const ret result = SL_LIKELY(is_known) ? real args : name##__first(LIST args caller, real);                        \
		const bool done = result == 0;                                                                                     \
		struct sl_fields fields;                                                                                           \
                                                                                                                                   \
		FILL(verb, none, name, __VA_ARGS__);                                                                               \
		if (!(done && (known_answer)) && is_known)                                                                         \
			sl_record_made(SL_API_##name, caller, result, &fields);                                                    \
		return result;                                                                                                     \
	}                                                                                                                          \
	ENTRIES(ret, name, proto, args)

#define ALSO(verb, kind, ret, name, tag)

#define LOOKUP(ret, name, proto, args, after)                                                                                      \
	BODY(ret, name, proto)                                                                                                     \
	{                                                                                                                          \
		ret(*real) PROTOTYPE proto = sl_hooks_real(SL_API_##name, instance, caller);                                       \
		ret result;                                                                                                        \
                                                                                                                                   \
		if (SL_UNLIKELY(!real))                                                                                            \
			return (ret)OF_FAMILY(ABSENT_);                                                                            \
		result = real args;                                                                                                \
		if (!result)                                                                                                       \
			after;                                                                                                     \
		return result;                                                                                                     \
	}                                                                                                                          \
	ENTRIES(ret, name, proto, args)

/* Forwards a call, and records it where it runs out of memory, unless a call inside it has been recorded for that already. */
#define FORWARDED(ret, name, proto, args, before)                                                                                  \
	BODY(ret, name, proto)                                                                                                     \
	{                                                                                                                          \
		ret(*real) PROTOTYPE proto = sl_hooks_real(SL_API_##name, instance, caller);                                       \
		const uint32_t failures = sl_thread.ooms;                                                                          \
		ret result;                                                                                                        \
                                                                                                                                   \
		if (SL_UNLIKELY(!real))                                                                                            \
			return (ret)OF_FAMILY(ABSENT_);                                                                            \
		before;                                                                                                            \
		result = real args;                                                                                                \
		if (SL_UNLIKELY(result == (ret)OF_FAMILY(OOM_)) && failures == sl_thread.ooms)                                     \
			sl_record_failed(SL_API_##name, caller, result);                                                           \
		return result;                                                                                                     \
	}                                                                                                                          \
	ENTRIES(ret, name, proto, args)

#define CHECKED(ret, name, proto, args) FORWARDED(ret, name, proto, args, (void)0)

/*
 * The kernel's code is loaded inside its first launch, which follows the look-up on the same thread.  That launch has a
 * function of its own, so that other launches need no more stack.
 */
#define LAUNCHED(ret, name, proto, args, function)                                                                                 \
	static __attribute__((noinline)) ret name##__loading(LIST proto const void *caller, ret(*real) PROTOTYPE proto)            \
	{                                                                                                                          \
		struct sl_fields fields = {.address = (uintptr_t)(function), .api = SL_API_##name##_first};                        \
		struct sl_frame frame;                                                                                             \
		ret result;                                                                                                        \
                                                                                                                                   \
		sl_thread.kernel = 0;                                                                                              \
		if (SL_UNLIKELY(!sl_record_open(&frame, SL_API_##name, caller, &fields)))                                          \
			return real args;                                                                                          \
		result = sl_record_refused(&frame) ? (ret)OF_FAMILY(OOM_) : real args;                                             \
		sl_record_close(&frame, result, result == 0, &fields);                                                             \
		sl_thread.kernel = result ? fields.address : 0; /* not loaded yet */                                               \
		return result;                                                                                                     \
	}                                                                                                                          \
	FORWARDED(ret, name, proto, args,                                                                                          \
		  if (SL_UNLIKELY((uintptr_t)(function) == sl_thread.kernel) &&                                                    \
		      (function)) return name##__loading(LIST args caller, real))

/* An answer about memory, clamped to the limit; device -1: the current one.  Pointers to 64 bits, or NULL. */
static void fields_clamp(enum sl_family family, int device, void *free_bytes, void *total_bytes)
{
	if (device < 0)
		device = sl_device_current(family).device;
	sl_limit_clamp(device, free_bytes, total_bytes);
}

#define QUERY(ret, name, proto, args, device, free_bytes, total_bytes)                                                             \
	LOOKUP(ret, name, proto, args,                                                                                             \
	       if (sl_fields_asked(OF_FAMILY(SL_FAMILY_), caller, free_bytes))                                                     \
		       fields_clamp(OF_FAMILY(SL_FAMILY_), device, free_bytes, total_bytes))

/* The range is delivered here, unless the real function has called back into nvtx.c, which then delivered it. */
#define RANGE(verb, ret, name, proto, args, deliver)                                                                               \
	BODY(ret, name, proto)                                                                                                     \
	{                                                                                                                          \
		ret(*real) PROTOTYPE proto = sl_hooks_real(SL_API_##name, instance, caller);                                       \
		const uint32_t delivered = sl_nvtx_delivered;                                                                      \
		ret result = real ? real args : (ret)0;                                                                            \
		const unsigned api = SL_API_##name;                                                                                \
		ret mine;                                                                                                          \
                                                                                                                                   \
		(void)api;                                                                                                         \
		if (sl_nvtx_delivered != delivered)                                                                                \
			return result;                                                                                             \
		mine = deliver;                                                                                                    \
		return real ? result : mine;                                                                                       \
	}                                                                                                                          \
	ENTRIES(ret, name, proto, args)

/* Instance 0 is for calls without the user's tool. */
#define INJECTED(ret, name, proto, args, initialize)                                                                               \
	BODY(ret, name, proto)                                                                                                     \
	{                                                                                                                          \
		ret(*real) PROTOTYPE proto = instance ? sl_hooks_real(SL_API_##name, instance, caller) : NULL;                     \
                                                                                                                                   \
		return initialize;                                                                                                 \
	}                                                                                                                          \
	ENTRIES(ret, name, proto, args)

/* No library provides the function: returns NULL, which callers read as "no memory". */
#define FRAMEWORK(verb, ret, name, proto, args, before, after)                                                                     \
	BODY(ret, name, proto)                                                                                                     \
	{                                                                                                                          \
		ret(*real) PROTOTYPE proto = sl_hooks_real(SL_API_##name, instance, caller);                                       \
		const unsigned api = SL_API_##name;                                                                                \
		ret result;                                                                                                        \
                                                                                                                                   \
		(void)api;                                                                                                         \
		if (SL_UNLIKELY(!real))                                                                                            \
			return (ret)0;                                                                                             \
		before;                                                                                                            \
		result = real args;                                                                                                \
		after;                                                                                                             \
		return result;                                                                                                     \
	}                                                                                                                          \
	ENTRIES(ret, name, proto, args)

#define SLOT(...)
#define HAND(verb, kind, id, name)

#include "agent/hooks/all.def"

/* The entries of instances 1 to 3 as distances, since addresses would each need a relocation at every start. */
#define ENTRY_DISTANCES(name) ".long " #name "__1 - .\n.long " #name "__2 - .\n.long " #name "__3 - .\n"

__asm__(".pushsection .rodata.sl_hook_entries, \"a\"\n"
	".balign 4\n"
	".globl sl_hook_entries\n"
	".hidden sl_hook_entries\n"
	"sl_hook_entries:\n"
	".long 0\n.long 0\n.long 0\n"
#define ROW(verb, kind, ret, name, ...)	 ENTRY_DISTANCES(name)
#define ONCE(verb, ret, name, ...)	 ENTRY_DISTANCES(name)
#define ALSO(verb, kind, ret, name, tag) ".long 0\n.long 0\n.long 0\n"
#define LOOKUP(ret, name, ...)		 ENTRY_DISTANCES(name)
#define CHECKED(ret, name, ...)		 ENTRY_DISTANCES(name)
#define LAUNCHED			 CHECKED
#define QUERY(ret, name, ...)		 ENTRY_DISTANCES(name)
#define RANGE(verb, ret, name, ...)	 ENTRY_DISTANCES(name)
#define INJECTED(ret, name, ...)	 ENTRY_DISTANCES(name)
#define FRAMEWORK(verb, ret, name, ...)	 ENTRY_DISTANCES(name)
#define SLOT(...)			 ".long 0\n.long 0\n.long 0\n"
#define HAND(verb, kind, id, name)	 ".long 0\n.long 0\n.long 0\n"
#include "agent/hooks/all.def"
	".popsection\n");
