/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether a forked child can make threads: another thread of its parent may have held a lock that making one takes.
 */
#pragma once

#include <stdbool.h>

/*
 * Makes a thread that takes the loader's locks, and waits for it for 20 ms at most.  If the thread got them, sl_objects_trusted
 * is true.  False: no thread can be made here.  Where making one might wait for ever, a copy of this process tries it first.
 */
bool sl_threads_try(void);

/* The thread that sl_threads_try made is still there.  It may wait as long as the process lives.  Writer. */
bool sl_threads_trying(void);
