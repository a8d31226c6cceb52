/* SPDX-License-Identifier: MIT */
/*
 * Native stacks of a process that is watched.  The BPF program (native.bpf.c) copies a piece of the stack.  Here it is unwound by
 * the tables of the process's libraries (.eh_frame), read by libdw, which is opened only when needed.
 *
 * Exact or cut: a frame that no table describes, or that lies beyond the copied piece, ends the stack, which then says that it is
 * truncated.  Changes of the process's libraries are counted: a stack is unwound only by the libraries of its own moment.
 */
#pragma once

#include "attach/probes.h"
#include "attach/recording.h"

struct sl_unwind;

/* Has the process's stacks copied.  NULL: *why (static text) says why not. */
struct sl_unwind *sl_unwind_new(long pid, struct sl_probes *probes, const char **why);

/* Id of the stack in the recording; 0: not known. */
uint32_t sl_unwind_stack(struct sl_unwind *unwind, struct sl_recording *output, const struct sl_seen_native *seen);

void sl_unwind_free(struct sl_unwind *unwind);
