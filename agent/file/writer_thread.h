/* SPDX-License-Identifier: MIT */
/*
 * The one background thread: it lets the writer work, samples memory, opens the libraries that must not be opened on the path
 * of a call.  All signals blocked, a stack of its own size.
 *
 * It does not keep the process alive: where it is the last of the C library's threads it ends, and the process with it, as after
 * pthread_exit in main.  For what only a process of one thread may do it is parked: it ends, and the next call that looks
 * (sl_ring_make_room), a new thread, or the end of the process starts it again.
 */
#pragma once

#include <stdbool.h>

#include "agent/mute.h"

/* Before it is started: the program's signals, with which the process ends where the writer is its last thread. */
void sl_writer_thread_signals(const struct sl_mute *mute);

/* Start it.  0 or errno.  Allocates. */
int sl_writer_thread_start(void);

/* Not now: it counts as parked from the start. */
void sl_writer_thread_put_off(void);

/* End it and wait until the kernel counts it no more.  False: it was not there, or did not end in time. */
bool sl_writer_thread_park(void);

bool sl_writer_thread_is_parked(void);
void sl_writer_thread_unpark(void); /* start it again, if it is parked */
