/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's own stack, of which the thread needs all from its stack pointer on as long as it runs, and how much is left
 * of the stack that it stands on.  Any other stack, a coroutine's or the one that a coroutine was begun on, may be gone at the next
 * call.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"

extern __thread struct sl_own {
	uintptr_t begin, end; /* end 0: not known yet */
	bool grows;	      /* the first thread's: begin is as far as it was found mapped */
} sl_own __attribute__((tls_model("initial-exec")));

static inline __attribute__((always_inline)) bool sl_own_is_known(uintptr_t sp)
{
	return sp - sl_own.begin < sl_own.end - sl_own.begin;
}

/* Looks further than what is known.  Changes errno. */
bool sl_own_reaches(uintptr_t sp);

/* The address lies in the thread's own stack. */
static inline __attribute__((always_inline)) bool sl_own_has(uintptr_t sp)
{
	return SL_LIKELY(sl_own_is_known(sp)) || sl_own_reaches(sp);
}

/* Called when the program has given the calling thread an alternate stack, or taken it back. */
void sl_own_tell(const stack_t *told);

/*
 * True: the thread stands on an alternate stack: one that the program has told of, or that the kernel knows of.  The kernel is not
 * asked where a seccomp filter might forbid the question.  Changes errno.
 */
bool sl_own_on_alternate(stack_t *alternate);

/*
 * True: so much can be read below here, or will be once it is needed.  On an alternate stack, which seldom has a guard page: so
 * much of it is left.  Changes errno.
 */
bool sl_own_has_room(uintptr_t bytes);

/* The same of the thread's own stack alone.  False: the thread stands on another one, whose end nobody knows. */
bool sl_own_could_take(uintptr_t bytes);
