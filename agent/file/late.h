/* SPDX-License-Identifier: MIT */
/* What a program's thread writes itself, where the writer has ended or never was.  It does so on a stack of ours. */
#ifndef AGENT_FILE_LATE_H
#define AGENT_FILE_LATE_H

/*
 * A call ended after the footer was written (destructors free memory after ours): its thread writes the event itself, since
 * the writer has ended.  Such events have the flag late.
 */
void sl_late_write(void);

/* What the writer would do, on a stack of ours, with the program's signals blocked; then what others have recorded meanwhile. */
void sl_late_run(void (*work)(void));

#endif
