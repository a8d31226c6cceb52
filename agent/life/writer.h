/* SPDX-License-Identifier: MIT */
/* The work of the background thread (writer_thread.h): moves events and definitions from the ring into the trace file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
