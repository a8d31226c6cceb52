/* SPDX-License-Identifier: MIT */
/*
 * Python stacks of a process that is watched.  The BPF program (python.bpf.c) copies addresses of code objects and instructions
 * while the thread stands still.  Here they get their names, a little later, from the process's memory.
 *
 * The names are exact, because deaths of code objects are counted by slot.  What was read of a code object is believed only if no
 * code object of its slot died between the call and the end of the reading, or if all that died are known to be others.  When one
 * dies whose slot was seen on a stack, the BPF program copies what its name is read from; without room for that it has no name.
 */
#pragma once

#include "attach/probes.h"
#include "attach/recording.h"

struct sl_lines;

/*
 * Looks for the interpreter and has its stacks taken.  NULL: there is none so far (*why NULL), or *why (static text)
 * it cannot be.
 */
struct sl_lines *sl_lines_new(long pid, struct sl_probes *probes, const char **why);

/* Id of the stack in the recording, always the same one; 0: it is not known. */
uint32_t sl_lines_stack(struct sl_lines *lines, struct sl_recording *output, const struct sl_seen_lines *seen);

/* A code object has died (SL_SEEN_DEATH). */
void sl_lines_died(struct sl_lines *lines, const struct sl_seen_death *death);

void sl_lines_free(struct sl_lines *lines);
