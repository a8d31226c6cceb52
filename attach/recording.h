/* SPDX-License-Identifier: MIT */
/* The trace of one attached process: the same file as the agent writes, made from outside. */
#ifndef ATTACH_RECORDING_H
#define ATTACH_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/event.h"
#include "common/pack.h"

struct sl_recording;

/* A new trace of the process in `folder`, made with its parents, with its header and modules.  NULL: *why says what failed. */
struct sl_recording *sl_recording_open(const char *folder, long pid, const char **why);
const char *sl_recording_path(const struct sl_recording *output);

/* An event of the thread; the next in its order.  frames: of the native stack, innermost first, as many as are not 0. */
void sl_recording_event(struct sl_recording *output, long tid, struct sl_event *event, const uint64_t *frames,
			unsigned frame_count);

/* One definition. */
void sl_recording_define(struct sl_recording *output, const struct sl_pack *map);
void sl_recording_note(struct sl_recording *output, const char *text);
void sl_recording_lost(struct sl_recording *output, uint64_t count, uint64_t begin_ns, uint64_t end_ns);

/* What waits goes to the file.  False: it could not be written. */
bool sl_recording_flush(struct sl_recording *output);

/* The footer: `how` it ended. */
bool sl_recording_close(struct sl_recording *output, const char *how);

#endif
