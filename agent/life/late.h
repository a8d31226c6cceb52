/* SPDX-License-Identifier: MIT */
/*
 * Calls that end after the footer was written: destructors of libraries free memory after ours.  Such events have the flag late.
 * For them the writer runs until the process ends, and a thread that makes such a call waits for the writer.
 */
#pragma once

#include <stdbool.h>

/* For such a call's thread: returns when the event is in the file or safe in the ring, or when the writer has stopped. */
void sl_late_write(void);

/* For the writer, after the footer: writes what others wait for, until the recording goes on (true) or enough() is true (false). */
bool sl_late_serve(bool (*enough)(void));
