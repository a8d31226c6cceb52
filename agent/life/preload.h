/* SPDX-License-Identifier: MIT */
/* Start, fork, exec, exit of the recording: preload.c is the only file that knows their order. */
#pragma once

#include <stdbool.h>

#include "agent/process/agent.h"
#include "agent/call/unwound.h"

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
