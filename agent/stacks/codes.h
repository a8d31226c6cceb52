/* SPDX-License-Identifier: MIT */
/*
 * Which code objects have died, so that a cached stack that names one by address is never taken for a new
 * code object at the same address.  PyCode_Type.tp_dealloc is replaced once by a hook that counts deaths, per
 * slot of a small hash table of addresses, and only in slots some cache depends on.
 *
 * A cached stack keeps the sum of its codes' slots.  Counts only grow, so an equal sum means that none of its
 * codes has died.  sl_codes_stamp changes with every counted death: as long as it stands still nothing need
 * be summed.
 *
 * Exact because a code on the calling thread's stack is alive: if it is not the one that was cached, that one
 * was freed before, and its death was counted before the allocator could hand the address out again.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern _Atomic uint64_t sl_codes_stamp;

/* Install the hook in the word that holds PyCode_Type.tp_dealloc, which must be known to be writable.
 * True once it is in; false while another thread installs it. */
bool sl_codes_watch(_Atomic uintptr_t *dealloc);
bool sl_codes_watched(void);

/* Counts the code's slot from now on and returns its value, for the sum.  Read the stamp before the first call. */
uint32_t sl_codes_mark(uintptr_t code);
/* The value of the code's slot. */
uint32_t sl_codes_count(uintptr_t code);
