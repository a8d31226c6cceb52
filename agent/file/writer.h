/* SPDX-License-Identifier: MIT */
/*
 * The one background thread: moves what the ring holds into the trace file, samples memory, opens the
 * libraries that must not be opened on the path of a call.  All signals blocked.
 */
#ifndef AGENT_FILE_WRITER_H
#define AGENT_FILE_WRITER_H

#include <stdbool.h>

/* Start it.  0 or errno. */
int sl_writer_start(void);

/* What it does last: write what waits and the footer, and say that it is done.  By another thread where there is none. */
void sl_writer_finish(void);

/*
 * One pass over the ring by the calling thread, everything that has finished.  The writer's own, and sl_preload_late's
 * once the writer has ended.  False: something could not be written.
 */
bool sl_writer_drain(void);

/* Make the writer's buffers, before anything drains.  False: no memory. */
bool sl_writer_prepare(void);

#endif
