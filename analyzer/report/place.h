/* SPDX-License-Identifier: MIT */
/*
 * The place of a block: the line a reader would look at first.  It is not the innermost frame but the one from where the stacks
 * of a run part.  The rule, over the program's own frames (its Python lines, and native lines of objects that were not installed):
 *
 *  - Frames between two of one function are its recursion and go; so do wrappers (`wrapper`, `_call_impl`) that are not innermost.
 *  - A function asks through so many of its lines, and is called from so many.  With at least twice as many callers as lines it is a
 *    helper: what it is called for parts outside of it.  A constructor that asks in one line is one too. Lines and callers
 *    are those of all processes of the run: a worker may call a helper once.
 *  - The place is the innermost frame outside the last helper that is reached without passing a function whose own lines part.
 *
 * Where no own frame is known it is the frame of sl_stacks_interesting.  The helper stays visible behind the place ("via").
 * Main thread only: symbols are read.
 */
#ifndef ANALYZER_REPORT_PLACE_H
#define ANALYZER_REPORT_PLACE_H

#include "analyzer/report/report.h"

/* The frame that names the place, one of `frames`; NULL: the stack is empty. */
const struct sl_stack_frame *sl_place_of(struct sl_process *process, const struct sl_stack_frame *frames, unsigned count);

/*
 * Place, and behind it up to `max` - 1 of the callers that are worth a word, innermost first; *via is the innermost helper, and
 * *next the frame just inside the place, which may be the same one; NULL: there is none.  Returns how many.
 */
unsigned sl_place_chain(struct sl_process *process, const struct sl_stack_frame *frames, unsigned count,
			const struct sl_stack_frame **chain, unsigned max, const struct sl_stack_frame **via,
			const struct sl_stack_frame **next);

/* "float* n::make<float>(unsigned long)" is n::make, whatever it is made for; names of Python are as they are.  Returns its length. */
size_t sl_place_name(const struct sl_stack_frame *frame, char *out, size_t size);
uint64_t sl_place_hash(const char *text);

#endif
