/* SPDX-License-Identifier: MIT */
/*
 * Calls that end after the footer was written: destructors of libraries free memory after ours.  Such events have the flag late.
 * The writer stays for them until the process is no more, and their thread waits for it.
 */
#pragma once

#include <stdbool.h>

/* Such a call's thread: returns when the event is in the file, or safe in the ring, or the writer writes no more. */
void sl_late_write(void);

/* The writer, after the footer: write what others wait for, until the recording goes on, or `enough`: then false. */
bool sl_late_serve(bool (*enough)(void));
