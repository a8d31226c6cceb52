/* SPDX-License-Identifier: MIT */
/* The trace of one attached process: the same file as the agent writes, made from outside. */
#ifndef ATTACH_OUTPUT_H
#define ATTACH_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/event.h"
#include "common/pack.h"

struct sl_output;

/* A new trace of the process in `folder`, made with its parents, with its header and modules.  NULL: *why says what failed. */
struct sl_output *sl_output_open(const char *folder, long pid, const char **why);
const char *sl_output_path(const struct sl_output *output);

/* An event of the thread; the next in its order.  frames: of the native stack, innermost first, as many as are not 0. */
void sl_output_event(struct sl_output *output, long tid, struct sl_event *event, const uint64_t *frames, unsigned frame_count);

/* One definition. */
void sl_output_define(struct sl_output *output, const struct sl_pack *map);
void sl_output_note(struct sl_output *output, const char *text);
void sl_output_lost(struct sl_output *output, uint64_t count, uint64_t begin_ns, uint64_t end_ns);

/* What waits goes to the file.  False: it could not be written. */
bool sl_output_flush(struct sl_output *output);

/* The footer: `how` it ended. */
bool sl_output_close(struct sl_output *output, const char *how);

#endif
