/* SPDX-License-Identifier: MIT */
/* Whether a forked child can make threads: another thread of its parent may have held what that takes. */
#ifndef AGENT_SYMBOLS_THREADS_H
#define AGENT_SYMBOLS_THREADS_H

#include <stdbool.h>

/*
 * Find out, by a thread that may wait, for 20 ms at most, whether the loader's locks are free (sl_objects_trusted says so
 * then).  False: no thread can be made here; where that would wait for ever, a copy of this process has found out.
 */
bool sl_threads_try(void);

#endif
