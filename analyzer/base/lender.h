/* SPDX-License-Identifier: MIT */
/*
 * Libraries and programs that a trace names may lie anywhere, but a process that reads the trace may open almost nothing
 * (base/confine.h). So another process, the lender, which never sees a byte of the trace, opens them for it.  It only opens
 * regular ELF files within the budget that have the recorded build id; it reads nothing but their notes.  Any thread, and any
 * process forked later, may ask.
 */
#pragma once

#include <stdbool.h>

/*
 * To be called before other threads start and before sl_confine.  symbols: a folder that is searched too (by the file's path
 * below it, its name, and as .build-id/xx/rest.debug), or NULL.  A process that starts none opens files itself, by the same
 * rules; one that cannot start it opens none.
 */
void sl_lender_start(const char *symbols);

/* From now on nothing is opened (ENOTSUP): only the names of functions inside the traces are known. */
void sl_lender_refuse(void);

/*
 * A descriptor, or -1 with errno: EINVAL not a regular file, EFBIG over the budget, ENOEXEC not ELF, ESTALE another build.
 * build_id: in hexadecimal; "": the file must have none.
 */
struct stat;
int sl_lender_open(const char *path, const char *build_id, struct stat *st);

/*
 * Why files that may be here were not read, though at another time they would be: EAGAIN no process is left, EMFILE or ENFILE no
 * descriptor, ENOMEM no memory, EIO the lender has ended, or the disk fails.  0: nothing kept any from it.  Of this process, the
 * first reason.  The other notes such a reason of a file that was lent; any other errno is none.
 */
int sl_lender_lacked(void);
unsigned sl_lender_lacks(void); /* how often */
void sl_lender_lack(int why);
