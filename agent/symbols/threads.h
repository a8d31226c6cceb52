/* SPDX-License-Identifier: MIT */
/* Whether a forked child can make threads: another thread of its parent may have held what that takes. */
#pragma once

#include <stdbool.h>

/*
 * Finds out whether the loader's locks are free, by a thread that may wait, for 20 ms at most (sl_objects_trusted says so
 * then).  False: no thread can be made here; where making one would wait for ever, a copy of this process has found that
 * out.
 */
bool sl_threads_try(void);

/* The thread that sl_threads_try made is still there.  It may wait as long as the process lives.  Writer. */
bool sl_threads_trying(void);
