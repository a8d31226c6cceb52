/* SPDX-License-Identifier: MIT */
/*
 * Unwinds a native stack where our own walk cannot: by libunwind, which is never linked (it would take over C++ exceptions of the
 * program) and which the writer thread opens RTLD_LOCAL; until then libgcc_s of the program, if it has one, twenty times slower.
 */
#ifndef AGENT_STACKS_UNWINDER_H
#define AGENT_STACKS_UNWINDER_H

#include <stdbool.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "common/text.h"

struct sl_libunwind {
	int (*backtrace)(void **pcs, int max);
	int (*init_local)(unw_cursor_t *cursor, unw_context_t *context);
	int (*step)(unw_cursor_t *cursor);
	int (*get_reg)(unw_cursor_t *cursor, unw_regnum_t reg, unw_word_t *value);
	int (*get_proc_info)(unw_cursor_t *cursor, unw_proc_info_t *info);
	int (*getcontext)(unw_context_t *context);
	unsigned behind; /* how far its addresses lie behind return addresses: 1 with libunwind 1.3, else 0 */
};

/* Before the first stack: finds libgcc_s. */
void sl_unwinder_start(void);

/* Writer thread only: opens libunwind. */
void sl_unwinder_load(void);

/* Writer thread, now and then.  True, once: the program has closed libunwind's own descriptors. */
bool sl_unwinder_disturbed(void);

/* NULL: not yet, or never.  Of its functions all but `backtrace` may be missing. */
const struct sl_libunwind *sl_unwinder_libunwind(void);

/* Return addresses of the calling thread, innermost first; the count of them. */
int sl_unwinder_walk(void **pcs, int max);

/*
 * Where libunwind knows no way on from an address it asks the kernel whether memory is mapped, with read(), a cancellation
 * point, and it fills its tables, which no signal handler may leave half done; libgcc holds the loader's lock.  A thread
 * that has seen its stacks with libunwind comes to none of that, and is spared the cost.
 */
int sl_unwinder_undisturbed(void **pcs, int max);

/*
 * The walk is believed without libunwind, which keeps what it knew of an object that was unloaded, and takes it for what lies
 * there now; and which is not there beside a sanitizer.
 */
bool sl_unwinder_walk_alone(void);

/* "native libunwind.so.8", or what there is instead. */
void sl_unwinder_describe(struct sl_text *text);

#endif
