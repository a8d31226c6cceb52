/* SPDX-License-Identifier: MIT */
/*
 * Files of /proc and /sys that are read repeatedly.  They are kept open, because a program may forbid itself to open files
 * (seccomp).  Their descriptors are 1000 and above, as for our own files, because a program may expect certain low numbers.  If
 * few descriptors are allowed, and none may lie beyond the limit, nothing is kept open.  A file that was not there is not sought
 * again, unless it is one of /proc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same as sl_procfile_read.  Any thread. */
long sl_open_proc_read(const char *path, char *buffer, size_t size);

/* Writer: looks at the process for the questions below.  another: true if we have a thread beside the writer. */
void sl_open_proc_look(bool (*another)(void));

/*
 * The program has put a seccomp filter on itself since the recording began: the writer no longer opens, removes or maps files
 * (agent/README.md, Sandboxes).
 */
bool sl_open_proc_sandboxed(void);

/* The signals for which the program has handlers, as of the last look: number N is bit N - 1.  All, where nobody says. */
uint64_t sl_open_proc_handled(void);

/* Writer: the signals that wait for it alone.  A new writer begins first, since what is kept is of the one before. */
void sl_open_proc_writer_begin(void);
uint64_t sl_open_proc_own_pending(void);

/* There were filters when the recording began: a container's, or the program's own. */
bool sl_open_proc_filtered(void);

/*
 * True: the calling thread has a filter that the first thread has not.  So would a thread that it makes, and the program could no
 * longer give all its threads one filter (SECCOMP_FILTER_FLAG_TSYNC).  Asked by the one thread that is about to make the writer.
 */
bool sl_open_proc_confined_alone(void);

/* True: the process has only our threads.  The first thread, which the kernel lists until the end, and all others have ended. */
bool sl_open_proc_deserted(void);

/*
 * How the last thread left, as wait() tells it: by the system call, or killed alone, as a filter does.  From Linux 5.18 on the
 * process ends so.  Known for the first thread only; 0, as from the C library, if others outlived it.
 */
int sl_open_proc_last_status(void);

/* Called when a recording begins: forgets what a forked child inherited; filters that exist already count as the container's. */
void sl_open_proc_begin(void);
