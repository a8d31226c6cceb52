/* SPDX-License-Identifier: MIT */
#include "agent/hooks/parts.h"
#include "agent/process/plain.h"
#include "agent/symbols/symbols.h"

/* --- names ---------------------------------------------------------------------------------------------- */

#define INDEX_SIZE 4096 /* a power of two, well above the number of rows */
_Static_assert(SL_API_COUNT * 2 < INDEX_SIZE, "index of names too full");

static _Atomic uint16_t name_index[INDEX_SIZE];
static atomic_bool name_index_ready;

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash ^ hash >> 15;
}

/*
 * Built at the first look-up of a name that we may have.  Threads that build it at the same time need no lock: each goes in order
 * of ids, so they write the same ids into the same places.
 */
static void make_name_index(void)
{
	for (unsigned id = 1; id < SL_API_COUNT; id++) {
		uint32_t at = hash_of(sl_hooks[id].name);
		unsigned there;

		/* Only rows that have a wrapper, not second meanings. */
		if (!sl_hook_entries[id][0])
			continue;
		while ((there = atomic_load_explicit(&name_index[at % INDEX_SIZE], memory_order_relaxed)) && there != id)
			at++;
		atomic_store_explicit(&name_index[at % INDEX_SIZE], (uint16_t)id, memory_order_relaxed);
	}
	atomic_store_explicit(&name_index_ready, true, memory_order_release);
}

unsigned sl_hooks_find(const char *name)
{
	uint32_t at = hash_of(name);
	unsigned id;

	if (SL_UNLIKELY(!atomic_load_explicit(&name_index_ready, memory_order_acquire)))
		make_name_index();
	while ((id = atomic_load_explicit(&name_index[at % INDEX_SIZE], memory_order_relaxed)) &&
	       !sl_plain_same(sl_hooks[id].name, name))
		at++;
	return id;
}

/* --- versions ------------------------------------------------------------------------------------------- */

#define PER_THREAD_STREAM 2 /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, hipEnablePerThreadDefaultStream */

static const struct {
	char base[40];
	int version;
	bool per_thread;
	uint16_t api;
} variants[] = {
#define VARIANT(base, version, export)		  {#base, version, false, SL_API_##export},
#define VARIANT_PER_THREAD(base, version, export) {#base, version, true, SL_API_##export},
#define VARIANT_LEFT_ALONE(base, version)	  {#base, version, false, SL_API_none},
#include "agent/hooks/variants.def"
#undef VARIANT
#undef VARIANT_PER_THREAD
#undef VARIANT_LEFT_ALONE
};

/* The row of the ABI variant that a driver returns for this request. */
static unsigned find_version(const char *base, int version, uint64_t flags, enum sl_family family)
{
	bool per_thread = flags & PER_THREAD_STREAM, listed = false;
	int best_version = -1;
	unsigned best = SL_API_none;

	for (size_t i = 0; i < SL_COUNT(variants); i++) {
		if (!sl_plain_same(variants[i].base, base))
			continue;
		listed = true;
		if (variants[i].version > version || (variants[i].per_thread && !per_thread))
			continue;
		if (variants[i].version > best_version || (variants[i].version == best_version && variants[i].per_thread)) {
			best_version = variants[i].version;
			best = variants[i].api;
		}
	}
	if (!listed) {
		best = sl_hooks_find(base);
		if (sl_hooks[best].family != family)
			best = SL_API_none;
	}
	return best;
}

/* --- instances ------------------------------------------------------------------------------------------ */

/* The real functions of a row in the order in which they were met; instance i forwards to number i - 1. */
static _Atomic(void *) reals[SL_API_COUNT][SL_HOOK_INSTANCES - 1];

static unsigned instance_of(unsigned api, void *real)
{
	for (unsigned i = 0; i < SL_HOOK_INSTANCES - 1; i++) {
		void *there = atomic_load_explicit(&reals[api][i], memory_order_acquire);

		if (there == real)
			return i + 1;
		if (!there && atomic_compare_exchange_strong(&reals[api][i], &there, real))
			return i + 1;
		if (there == real)
			return i + 1;
	}
	/* The addresses of an unloaded library may be used again by another, so its functions must not be called any more. */
	for (unsigned i = 0; i < SL_HOOK_INSTANCES - 1; i++) {
		void *there = atomic_load_explicit(&reals[api][i], memory_order_acquire);

		if (!sl_resolve_loaded(there) && atomic_compare_exchange_strong(&reals[api][i], &there, real))
			return i + 1;
	}
	return 0;
}

extern const char __start_sl_wrappers[] __attribute__((visibility("hidden")));
extern const char __stop_sl_wrappers[] __attribute__((visibility("hidden")));

bool sl_hooks_is_wrapper(const void *address)
{
	return (const char *)address >= __start_sl_wrappers && (const char *)address < __stop_sl_wrappers;
}

static void *wrap(unsigned api, void *real)
{
	unsigned instance;

	if (!api || !real || sl_hooks_is_wrapper(real))
		return real;
	instance = instance_of(api, real);
	if (!instance)
		return real;
	return (char *)&sl_hook_entries[api][instance - 1] + sl_hook_entries[api][instance - 1];
}

void *sl_hooks_wrap(const char *name, void *real)
{
	return wrap(sl_hooks_find(name), real);
}

void *sl_hooks_wrap_version(const char *base, int version, uint64_t flags, enum sl_family family, void *real)
{
	return wrap(find_version(base, version, flags, family), real);
}

/* --- instance 0: the caller ------------------------------------------------------------------------------ */

/*
 * The result for a caller is kept per row and page of code, in one word: page, number of the unload before which it was found,
 * instance. A page holds the code of one object until something is unloaded.  While an unload is under way no kept word is used
 * and none is stored.
 */
#define CALLERS	      8
#define INSTANCE_BITS 2
#define UNLOAD_BITS   26
_Static_assert(SL_HOOK_INSTANCES <= 1 << INSTANCE_BITS, "an instance fits into a kept word");

static _Atomic uint64_t callers[SL_API_COUNT][CALLERS];

#define PAGE_BITS 12

/* The word without the instance.  It is never zero, since no code is in the first page. */
static inline uint64_t kept_word(const void *caller, uint64_t unload)
{
	const uint64_t numbers = (UINT64_C(1) << (UNLOAD_BITS + INSTANCE_BITS)) - (1 << INSTANCE_BITS);

	return ((uintptr_t)caller & ~((UINT64_C(1) << PAGE_BITS) - 1)) << (UNLOAD_BITS + INSTANCE_BITS - PAGE_BITS) |
	       (unload / (SL_UNLOAD >> INSTANCE_BITS) & numbers);
}

static inline void *kept_real(unsigned api, unsigned at, uint64_t wanted)
{
	uint64_t word = atomic_load_explicit(&callers[api][at % CALLERS], memory_order_acquire);

	return (word ^ wanted) < SL_HOOK_INSTANCES
		       ? atomic_load_explicit(&reals[api][(word % SL_HOOK_INSTANCES) - 1], memory_order_acquire)
		       : NULL;
}

static SL_NOINLINE void *find_real(unsigned api, const void *caller, uint64_t unload)
{
	_Atomic uint64_t *words = callers[api];
	unsigned at = (uintptr_t)caller >> PAGE_BITS & (CALLERS - 1), instance;
	int saved = errno;
	void *real;

	/* another page may have its first place: then it is in a later one */
	for (unsigned i = 1; i < CALLERS && !(unload % SL_UNLOAD); i++)
		if ((real = kept_real(api, at + i, kept_word(caller, unload))))
			return real;
	real = sl_resolve_for(sl_hooks[api].name, caller);
	instance = real ? instance_of(api, real) : 0;
	errno = saved;
	if (!instance || unload % SL_UNLOAD || atomic_load(&sl_objects_unloads) != unload)
		return real;
	for (unsigned i = 0; i < CALLERS; i++)
		if (!atomic_load_explicit(&words[(at + i) % CALLERS], memory_order_relaxed)) {
			at = (at + i) % CALLERS;
			break;
		}
	atomic_store_explicit(&words[at], kept_word(caller, unload) | instance, memory_order_release);
	return real;
}

SL_HOT void *sl_hooks_real(unsigned api, unsigned instance, const void *caller)
{
	uint64_t unload;
	void *real;

	if (instance)
		return atomic_load_explicit(&reals[api][instance - 1], memory_order_acquire);
	unload = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);
	if (SL_LIKELY(!(unload % SL_UNLOAD)) &&
	    SL_LIKELY((real = kept_real(api, (uintptr_t)caller >> PAGE_BITS, kept_word(caller, unload)))))
		return real;
	return find_real(api, caller, unload);
}
