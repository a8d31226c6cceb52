/* SPDX-License-Identifier: MIT */
/*
 * Turns the calls that were seen into events.  Inner calls return first, so they wait for the outermost one and then merge into
 * it by the same rule as in the agent (agent/call/classes.def).
 */
#pragma once

#include "attach/recording.h"
#include "attach/seen.h"

struct sl_calls;

/* runtime: major version of the process's CUDA or HIP runtime, 0 unknown. */
struct sl_calls *sl_calls_new(struct sl_recording *output, unsigned runtime);

void sl_calls_add(struct sl_calls *calls, const struct sl_seen *seen);

/* The stacks of the thread's next call, which has this number; 0: not known. */
void sl_calls_python(struct sl_calls *calls, uint32_t tid, uint64_t number, uint32_t python);
void sl_calls_native(struct sl_calls *calls, uint32_t tid, uint64_t number, uint32_t native);

/* Inner calls whose outer call never returned become events of their own.  Frees it. */
void sl_calls_end(struct sl_calls *calls);
