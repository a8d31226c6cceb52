/* SPDX-License-Identifier: MIT */
/*
 * Ranges of NVTX 2 and 3 and roctx, and backward passes: keeps which are open on each thread, and records them as events.
 *
 * A label's numbers collapse: "step_12" is the label "step_#" with index 12; of several numbers the last is
 * the index. Before the recording runs ranges start nothing and are only remembered; a thread that attaches
 * to the recording pushes, as events, what it has open.  So an event's label is right from the first one, and
 * a range opened before the first GPU call begins with it.
 *
 * A thread keeps SL_LABELS_DEPTH open ranges; deeper ones are counted, and are no events.  A pop without a
 * push is ignored.  A process keeps some thousand labels; past that, ranges with a new label have none, and a
 * note says so.
 *
 * Everything here is for the calling thread, allocates nothing, takes no lock, keeps errno.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/call/instant.h"
#include "common/base.h"

#define SL_LABELS_DEPTH	   32u
#define SL_LABELS_TEXT_MAX 256u /* longer labels are cut */

/* A label and its index; label 0 is none.  details: what NCCL says of a range of its own. */
struct sl_labels_entry {
	uint64_t index;
	uint16_t label;
	struct sl_instant_details details;
};

/* domain: put before the text with a colon, unless NULL or empty. */
struct sl_labels_entry sl_labels_intern(const char *domain, const char *text);

/* Id in the trace of a text, with its numbers collapsed; 0: none.  The thread need not be attached. */
uint32_t sl_labels_text(const char *text);

/*
 * Opens a range.  api: row of the hook table, for the event.  domain: ranges of one domain close in order, those of others
 * stay open.  Push and pop return the depth of the range within its domain, 0 the outermost; pop -1 if none was open.
 */
int sl_labels_push(unsigned api, unsigned domain, struct sl_labels_entry what);
int sl_labels_pop(unsigned api, unsigned domain);

/* Ranges that belong to the process: any thread may close them, by id.  id 0: a new one is made.  Returns the id. */
uint64_t sl_labels_start(unsigned api, struct sl_labels_entry what, uint64_t id);
void sl_labels_end(unsigned api, uint64_t id);

void sl_labels_mark(unsigned api, struct sl_labels_entry what);

/* False: --labels off.  True as long as nothing records. */
bool sl_labels_wanted(void);

/*
 * Text id of the innermost range open on the calling thread, 0 none; on a thread of autograd without ranges
 * the backward pass's.  The thread must be attached.
 */
uint32_t sl_labels_innermost(void);

extern atomic_bool sl_labels_used
	SL_HIDDEN; /* some thread has opened a range; in a program without ranges nothing more is looked up */

static inline uint32_t sl_labels_current(void)
{
	return atomic_load_explicit(&sl_labels_used, memory_order_relaxed) ? sl_labels_innermost() : 0;
}

/*
 * For a block event: the same text << 32 | the stack that is lent to the thread.  Keeps the text in sl_thread.label where it holds
 * until the thread's next range begins or ends.
 */
uint64_t sl_labels_of_block(void);

/*
 * Around a backward pass.  The outermost on a thread is the range "backward_#", which only its end closes.
 * While it is the only one in the process its label and its thread's Python stack are lent to autograd's
 * threads, which have no frames.
 */
void sl_labels_backward_begin(unsigned api, unsigned api_pop);
void sl_labels_backward_end(void);

/* Python stack lent to the calling thread; 0: none. */
uint32_t sl_labels_borrowed_stack(void);

/* The thread has attached to the recording: write its open ranges as events. */
void sl_labels_attached(void);
