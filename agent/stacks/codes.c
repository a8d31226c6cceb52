/* SPDX-License-Identifier: MIT */
#include "agent/stacks/inner.h"

#define SLOT_BITS 14

/*
 * Each slot: twice the number of deaths, plus one while a cache depends on it.  Mark and count share a word, so a death that is
 * counted while a mark is set is either in the value that the mark returns or makes that value stale.
 */
static _Atomic uint32_t slots[1u << SLOT_BITS];
_Atomic uint64_t sl_codes_stamp;

static _Atomic int claimed;
static _Atomic bool watched;
static void (*real_dealloc)(void *code);

static _Atomic uint32_t *slot_of(uintptr_t code)
{
	return &slots[(code >> 4) * 0x9e3779b97f4a7c15u >> (64 - SLOT_BITS)];
}

/* Runs in the program's thread when Python frees a code object, under whatever Python holds. */
static void code_dies(void *code)
{
	_Atomic uint32_t *slot = slot_of((uintptr_t)code);
	uint32_t value = atomic_load_explicit(slot, memory_order_relaxed);

	if (value & 1 && atomic_compare_exchange_strong(slot, &value, value + 1))
		atomic_fetch_add(&sl_codes_stamp, 1);
	real_dealloc(code);
}

bool sl_codes_watch(_Atomic uintptr_t *dealloc)
{
	if (atomic_exchange(&claimed, 1))
		return sl_codes_watched();
	real_dealloc = (void (*)(void *))atomic_load(dealloc);
	atomic_store(dealloc, (uintptr_t)code_dies);
	atomic_store_explicit(&watched, true, memory_order_release);
	return true;
}

bool sl_codes_watched(void)
{
	return atomic_load_explicit(&watched, memory_order_acquire);
}

uint32_t sl_codes_mark(uintptr_t code)
{
	return atomic_fetch_or(slot_of(code), 1) | 1;
}

uint32_t sl_codes_count(uintptr_t code)
{
	return atomic_load_explicit(slot_of(code), memory_order_relaxed);
}
