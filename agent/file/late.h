/* SPDX-License-Identifier: MIT */
/* Events behind the footer. */
#ifndef AGENT_FILE_LATE_H
#define AGENT_FILE_LATE_H

/*
 * A call ended after the footer was written (destructors free memory after ours): its thread writes the event itself, since
 * the writer has ended.  Such events have the flag late.
 */
void sl_late_write(void);

#endif
