/* SPDX-License-Identifier: MIT */
/* Start, fork, exec and end of a recording, and its writer. */
#pragma once

#include "agent/call/call.h"

/*
 * Calls that end after the footer was written: destructors of libraries free memory after ours.  Such events have the flag late.
 * For them the writer runs until the process ends, and a thread that makes such a call waits for the writer.
 */

/* For such a call's thread: returns when the event is in the file or safe in the ring, or when the writer has stopped. */
void sl_late_write(void);

/* For the writer, after the footer: writes what others wait for, until the recording goes on (true) or enough() is true (false). */
bool sl_late_serve(bool (*enough)(void));

/* Start, fork, exec, exit of the recording: preload.c is the only file that knows their order. */

/*
 * True when this process records: starts the recording if this is its first GPU call.  One load and one
 * comparison when it runs already.  False: disabled, stopped, or the caller is inside the start itself.
 */
static inline bool sl_preload_running(void)
{
	return !sl_unwound_inside() && sl_agent_attached();
}

/*
 * The process is about to end or to become another image (`how`: "exit", "_exit", "quick_exit", "exec"): write what waits
 * and the footer, and remove the ring.  Waits at most 2 s for the writer; where the disk hangs the ring stays behind.  Does
 * nothing in a vfork child, in a process that records nothing, or the second time.
 */
void sl_preload_finish(const char *how);

/* Tell the exit status before telling the process to finish; without it the footer has none. */
void sl_preload_status(int status);

void sl_preload_resume(void); /* exec failed, so the recording goes on */

/*
 * Call this before a call that only a process of one thread may make (unshare, setns): it ends the writer.  False: the
 * writer was not there, or could not end in time.  Afterwards the writer begins again.
 */
bool sl_preload_alone(void);
void sl_preload_not_alone(void);

/* Call this instead after a call that may have made it another user's process. */
void sl_preload_rights_changed(void);

/*
 * Call this before fork() and at exit: where ThreadSanitizer counts threads, the writer ends until the next call.  When the
 * handlers of pthread_atfork run, the sanitizer has taken its locks, and no thread can end.
 */
void sl_preload_uncounted(void);

/* The work of the background thread: moves events and definitions from the ring into the trace file. */

/* One pass over the ring; returns how long to sleep, in nanoseconds. */
uint64_t sl_writer_pass(uint64_t now_ns);

/* The writer's last work: writes what waits and the footer, and sets the flag that it is done. */
void sl_writer_finish(void);

/* The end of a recording without a writer: a thread of the program writes the footer and leaves the ring as it is. */
void sl_writer_leave(void);

/* One pass over everything in the ring that has finished.  False: something could not be written. */
bool sl_writer_drain(void);

/* Makes the writer's buffers, before anything is drained.  False: no memory. */
bool sl_writer_prepare(void);

/*
 * The one background thread: it runs the writer, samples memory, and opens the libraries that must not be opened on the path of a
 * call.  It blocks all signals and has a stack of its own size.
 *
 * It does not keep the process alive: as the last thread that the C library counts it ends, and the process with it, as after
 * pthread_exit in main.  While the process does what only a process of one thread may do, it is parked: it has ended, and the next
 * call that looks (sl_ring_make_room), a new thread, or the end of the process starts it again.  Around fork() it pauses.
 */

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
