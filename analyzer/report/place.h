/* SPDX-License-Identifier: MIT */
/*
 * The place of a block: the line a reader would look at first.  This is not the innermost frame, which is often a helper, but the
 * one at which the stacks of a run diverge.  The rule looks at the program's own frames (its Python lines, and native lines of
 * objects that were not installed):
 *
 *  - Frames between two of one function are its recursion and are skipped; so are wrappers (`wrapper`, `_call_impl`) that are not
 *    innermost.
 *  - For each function we count the lines in which it allocates and the lines from which it is called, over all processes of the
 *    run: a worker may call a helper only once.  With at least twice as many callers as lines it is a helper, whose purpose depends
 *    on the caller.  So is a constructor that allocates in one line.
 *  - A function that a package calls on its own account, as a Trainer its callbacks, is no helper of the line that called the
 *    package.
 *  - The place is the innermost frame outside the last helper that can be reached without passing a function that allocates in
 *    several lines of its own.  The helper is named behind the place ("via").
 *
 * A stack without such a line (stripped, or built without -g) is judged by the frames of objects that were not installed; without
 * names each address stands for a function.  Where no own frame is known at all the place is the frame of sl_stacks_interesting.
 * Main thread only, since symbols are read.
 */
#pragma once

#include "analyzer/report/report.h"

/* What the rule knows of the process, made when first asked for; the process owns it. */
struct sl_places *sl_places_of(struct sl_process *process);
/* The same of a process that is read anew, so that its lines are called what the report calls them.  NULL: the report lacks it. */
struct sl_places *sl_places_in(const struct sl_report *report, const struct sl_header *header);

/* The frame that names the place, one of `frames`; NULL: the stack is empty. */
const struct sl_stack_frame *sl_place_of(struct sl_process *process, const struct sl_stack_frame *frames, unsigned count);
/* The same of a stack; frames: room for SL_STACK_MAX, into which the result points. */
const struct sl_stack_frame *sl_place_at(struct sl_process *process, struct sl_stack stack, struct sl_stack_frame *frames);

/* One line; where no line is known, one address of one object. */
bool sl_place_same(const struct sl_stack_frame *a, const struct sl_stack_frame *b);

/* A hash of that line, or of that address and object, by which two stacks have one place; 0: the stack is empty.  Each stack is
 * looked at once. */
uint64_t sl_place_key(struct sl_process *process, struct sl_stack stack);

#define SL_PLACE_VIA 4

/*
 * The place, and behind it up to `max` - 1 callers worth naming, innermost first.  via: the frames from just inside the place to
 * the innermost helper, outermost first; of more than SL_PLACE_VIA some before the last are left out.  Returns how many frames
 * the chain has.
 */
unsigned sl_place_chain(struct sl_process *process, const struct sl_stack_frame *frames, unsigned count,
			const struct sl_stack_frame **chain, unsigned max, const struct sl_stack_frame *via[SL_PLACE_VIA],
			unsigned *via_count);

/* What a stack is called by: its frames that may name a place, and those inside it. */
struct sl_chain {
	struct sl_stack_frame all[SL_STACK_MAX];
	const struct sl_stack_frame *frame[SL_STACK_MAX]; /* the place and its callers, innermost first; of `all` */
	const struct sl_stack_frame *via[SL_PLACE_VIA];
	unsigned count, via_count;
};
void sl_place_take(struct sl_chain *chain, struct sl_process *process, struct sl_stack stack);

/* How many frames both have, from the outermost on. */
unsigned sl_place_shared(const struct sl_chain *a, const struct sl_chain *b);

/*
 * The function's name without template arguments, return type and parameters: "float* n::make<float>(unsigned long)" is
 * n::make.  Python names stay. Returns its length.
 */
size_t sl_place_name(const struct sl_stack_frame *frame, char *out, size_t size);
uint64_t sl_place_hash(const char *text);
/* `wrapper`, `_call_impl`: a function that only calls another. */
bool sl_place_is_wrapper(const struct sl_stack_frame *frame);
