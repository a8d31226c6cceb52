/* SPDX-License-Identifier: MIT */
/*
 * Tells what a program collects and frees itself from what it keeps: both fill evenly.  Evidence is how the blocks end, and what
 * else the program does.  For the analysis of a single process, since it reads the courses of tracks.
 */
#pragma once

#include <stdbool.h>

#include "analyzer/model/state/model.h"
#include "analyzer/model/counts/tracks.h"

/*
 * True: the program freed the track's blocks itself, not by ending.  The time until its end is no evidence: on a busy machine an
 * interpreter takes seconds to end.  Any of these shows it:
 *  - Most blocks were freed before the program's last allocation.
 *  - They were freed one by one, some after a pause (SL_TRACK_PAUSE_NS); the end of a program frees in a burst.  The frees last a
 *    quarter of the time of the allocations.
 */
bool sl_freed_is_freed(const struct sl_model *model, const struct sl_track *track);

/* True: the track began at this tick, in the second half of the program's work, and no earlier work went on beside it. */
bool sl_freed_is_last_phase(const struct sl_model *model, const struct sl_track *track, uint64_t begin_tick);
