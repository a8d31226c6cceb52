/* SPDX-License-Identifier: MIT */
/* Writes the trace of an attached process from outside: the same kind of file as the agent writes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/definition.h"
#include "common/event.h"

struct sl_recording;

/*
 * A new trace of the process in `folder` (made if missing, with its parents), with header and modules.  NULL: *why says what
 * failed.
 */
struct sl_recording *sl_recording_open(const char *folder, long pid, const char **why);
const char *sl_recording_path(const struct sl_recording *output);

/* Defines its modules again if they have changed: libraries come and go, an exec replaces all. */
void sl_recording_modules(struct sl_recording *output);

/* Id of a Python frame, which is defined when it is new.  0: no room. */
uint32_t sl_recording_frame(struct sl_recording *output, const struct sl_python_text *text);

/* Id of the stack of these frames (with SL_PYTHON_ENTERED), innermost first.  0: no room. */
uint32_t sl_recording_python(struct sl_recording *output, const uint32_t *frames, unsigned count, bool truncated);

/* Id of the native stack of these return addresses, innermost first.  0: no room.  *is_new: it was defined now. */
uint32_t sl_recording_native(struct sl_recording *output, const uint64_t *pcs, unsigned count, bool truncated, bool *is_new);

/* Code of Python's evaluation loop. */
void sl_recording_loop(struct sl_recording *output, uint64_t begin, uint64_t end);

/* Adds an event of the thread; events come in order. */
void sl_recording_event(struct sl_recording *output, long tid, const struct sl_event *event);

/* Ends and adds one definition. */
void sl_recording_define(struct sl_recording *output, struct sl_definition *map);
void sl_recording_note(struct sl_recording *output, const char *text);
void sl_recording_lost(struct sl_recording *output, uint64_t count, uint64_t begin_ns, uint64_t end_ns);

/* Writes what waits to the file.  False: it could not be written. */
bool sl_recording_flush(struct sl_recording *output);

/* Writes the footer; `how` says how the process ended. */
bool sl_recording_close(struct sl_recording *output, const char *how);
