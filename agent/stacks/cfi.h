/* SPDX-License-Identifier: MIT */
/*
 * How to get from a return address to the frame outside it, where that is simple: from .eh_frame, through the search table
 * that PT_GNU_EH_FRAME points to.  Simple is what compilers write for nearly every function.  For anything else (signal
 * frames, expressions, other registers) there is no rule, and libunwind is asked.  x86-64 only.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"

enum sl_cfi_kind {
	SL_CFI_NONE,   /* not simple, or not known */
	SL_CFI_BY_SP,  /* the canonical frame address (CFA) is rsp + cfa; the return address lies below it */
	SL_CFI_BY_BP,  /* the CFA is rbp + cfa */
	SL_CFI_END,    /* the outermost frame: its return address is undefined */
	SL_CFI_SIGNAL, /* a signal handler returns to it: no simple rule leads to the interrupted frame outside */
};

#define SL_CFI_BP_KEPT INT16_MIN

struct sl_cfi_rule {
	int32_t cfa;
	int16_t bp; /* offset from the CFA at which the caller's rbp lies; SL_CFI_BP_KEPT: it is still in rbp */
	uint8_t kind;
};

/* True: the rule leads to a frame outside. */
static inline bool sl_cfi_leads_on(struct sl_cfi_rule rule)
{
	return rule.kind == SL_CFI_BY_SP || rule.kind == SL_CFI_BY_BP;
}

/* The rule for the call that returns to `pc`.  Takes dl_iterate_phdr's lock. */
struct sl_cfi_rule sl_cfi_find(uintptr_t pc);

/* True: tables of an object were noise, or led out of the stack.  Libunwind, which believes any table, is not asked any more. */
extern _Atomic bool sl_cfi_lies SL_HIDDEN;
