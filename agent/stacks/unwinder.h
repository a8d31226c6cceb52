/* SPDX-License-Identifier: MIT */
/*
 * Unwinds a native stack where our own walk cannot.  It uses libunwind, which is never linked (it would take over the program's C++
 * exceptions): the writer thread opens it with RTLD_LOCAL.  The program's libgcc_s is not asked: where code has no tables it reads
 * that code, which may be no address, and a program may close it.
 */
#pragma once

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "common/text.h"

struct sl_libunwind {
	int (*backtrace)(void **pcs, int max); /* allocates at a thread's first call, for its thread-local data */
	int (*init_local)(unw_cursor_t *cursor, unw_context_t *context);
	int (*step)(unw_cursor_t *cursor);
	int (*get_reg)(unw_cursor_t *cursor, unw_regnum_t reg, unw_word_t *value);
	int (*get_proc_info)(unw_cursor_t *cursor, unw_proc_info_t *info);
	int (*getcontext)(unw_context_t *context);
	bool steps;	 /* functions other than backtrace are all there */
	unsigned behind; /* how far its addresses lie behind return addresses: 1 with libunwind 1.3, else 0 */
};

/* Writer thread only: opens libunwind. */
void sl_unwinder_load(void);

/* Writer thread, now and then.  True, once: the program has closed the descriptors that libunwind keeps open. */
bool sl_unwinder_lost_descriptors(void);

/* NULL: not opened yet, or never.  Where !steps any of its functions except `backtrace` may be missing. */
const struct sl_libunwind *sl_unwinder_libunwind(void);

/*
 * unw_step.  On aarch64 it looks for a signal frame by reading the code at the frame's address, and libunwind 1.3 and 1.6 do not
 * check it: where a walk went astray the program would end.  So the walk ends there.  May change errno.
 */
int sl_unwinder_step(const struct sl_libunwind *lib, unw_cursor_t *cursor);

/* Return addresses of the calling thread, innermost first; returns how many, 0 without libunwind.  allocates: it may. */
int sl_unwinder_walk(void **pcs, int max, bool allocates);

/*
 * The same with signals blocked and cancellation off, for addresses that libunwind does not know yet.  For those it asks
 * the kernel whether memory is mapped, by read(), a cancellation point; and it fills tables that a signal handler must not
 * leave half done.  Where it knows the addresses sl_unwinder_walk is cheaper.
 */
int sl_unwinder_walk_shielded(void **pcs, int max, bool allocates);

/*
 * True: our own walk is used without libunwind to check it, because libunwind keeps its tables of an unloaded object and
 * applies them to whatever is loaded there next, or because it is not there: not yet, beside a sanitizer, or not installed.
 */
bool sl_unwinder_walk_alone(void);

/* "native libunwind.so.8", or what there is instead. */
void sl_unwinder_describe(struct sl_text *text);
