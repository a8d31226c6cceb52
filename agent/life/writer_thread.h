/* SPDX-License-Identifier: MIT */
/*
 * The one background thread: it runs the writer, samples memory, and opens the libraries that must not be opened on the path of a
 * call.  It blocks all signals and has a stack of its own size.
 *
 * It does not keep the process alive: as the last thread that the C library counts it ends, and the process with it, as after
 * pthread_exit in main.  While the process does what only a process of one thread may do, it is parked: it has ended, and the next
 * call that looks (sl_ring_make_room), a new thread, or the end of the process starts it again.  Around fork() it pauses.
 */
#pragma once

#include <stdbool.h>

#include "agent/process/mute.h"

/* Called before the start: stores the program's signal state. The writer restores it if it is the last thread of the process. */
void sl_writer_thread_signals(const struct sl_mute *mute);

/* Starts it. 0 or errno.  Allocates. */
int sl_writer_thread_start(void);

/* The calling thread ends: where it is the program's last one, the writer looks often for its end, of which nobody tells. */
void sl_writer_thread_left(void);

/* Does not start it: it counts as parked from the beginning. */
void sl_writer_thread_put_off(void);

/*
 * Ends it and waits until the kernel no longer counts it; false: it did not run, or was not away in time.  Or has it pause, until
 * each thread that asked for that has it resume; false: it does not pause for this thread.
 */
bool sl_writer_thread_park(bool ends);
bool sl_writer_thread_resume(bool for_all); /* false: it did not pause.  Takes no lock. */

/* After the end of the recording: waits, no longer than a tenth of a second, until a writer that left with it is gone. */
void sl_writer_thread_await_end(void);

bool sl_writer_thread_is_parked(void);
bool sl_writer_thread_is_forbidden(void);
bool sl_writer_thread_unpark(void); /* starts it again if it is parked; false: this thread must not */
