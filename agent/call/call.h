/* SPDX-License-Identifier: MIT */
/* A call's way through the agent. */
#pragma once

#include "agent/gpu/gpu.h"
#include "agent/process/hook_rows.h"

/* A call on its way through its wrapper: what its row says of it, and what is kept of it on the wrapper's stack. */

#define SL_NO_DEVICE (-1)

/* What a row says of its call: inputs before it, outputs too after success.  Zero: unknown. */
struct sl_fields {
	uint64_t address, bytes, stream, context, object, extra, extra2;
	uint16_t kind, flags;	 /* enum sl_kind, enum sl_flag; read as wide as written, or the load would stall (common/slot.h) */
	int16_t device_plus_one; /* 0: ask the driver, where the verb needs a device; SL_NO_DEVICE: it is on the host */
	bool made;		 /* the call has returned already (sl_record_made) */
	uint16_t api;		 /* another row of the same function, chosen by its arguments; 0: the wrapper's own */
	void *const *more;	 /* `extra` objects of an UNMAP: for each behind the first an event of the ALSO row below */
};

/*
 * Lives on the wrapper's stack; its address shows which calls were left by longjmp.  The memory may be the program's again when we
 * look at it.  So each reader checks it, and only the frame's own call writes to it.
 */
struct sl_frame {
	struct sl_frame *outer;
	struct sl_frame *owner; /* the event that this call is part of; NULL: it is an event of its own */
	uintptr_t check, slot_check;
	struct sl_slot *slot, *second; /* NULL: the call is part of another event, was lost for want of room, or is not recorded */
	uint64_t seq, begin_ns;
	uint16_t api;
	uint8_t class;
	bool inject;		     /* the application's call is to fail */
	bool refuse;		     /* this call is not made, its result is out of memory */
	uint64_t free_bytes;	     /* free memory of the device before code was loaded or a context made; 0: not asked */
	struct sl_limit_claim claim; /* while sl_limit_active */
};

/* Which calls merge into the call that made them, and which have stacks; classes.def decides by verb. */

enum sl_class {
	SL_CLASS_CALL, /* merges into an outer call of any class */
	SL_CLASS_MEMORY,
	SL_CLASS_POOL,
	SL_CLASS_CONTEXT,
	SL_CLASS_MODULE,
	SL_CLASS_LIMIT,
	SL_CLASS_GRAPH,
	SL_CLASS_STREAM,
	SL_CLASS_EXTERNAL,
};

/*
 * Keeps what the program said of itself (agent/include/stormlog.h) before a recording ran, for that recording and for those of
 * forked children, which are the same program.  Any thread, async-signal-safe, allocates nothing.
 */

#define SL_EARLY_NOTES_KEY   64u /* bytes with the end mark; longer ones are cut */
#define SL_EARLY_NOTES_VALUE 192u
#define SL_EARLY_NOTES_PAIRS 64u /* texts that are kept; later ones go only to the recording that runs */

void sl_early_notes_metadata(const char *key, const char *value);

/* The program wants stacks, or none for now. */
void sl_early_notes_stacks(bool wanted);

/* The program asked how much memory is free, so what it does next may depend on the card.  The first time is kept. */
void sl_early_notes_free_asked(void);

/* A thread has attached to the recording: the first one gives it everything. */
void sl_early_notes_attached(void);

/* An event that happens at an instant and has nothing to return: ranges and marks. */

struct sl_instant_details {
	uint64_t address;  /* address of the memory, buffer or communicator that the event is about; 0: none */
	uint64_t bytes;	   /* size of that memory, or of the collective's message */
	uint64_t numbered; /* 1 + the index of the label of a range whose `extra` is an id; 0: none */
	uint64_t time_ns;  /* the event's time, if it is recorded later; 0: now */
};

void sl_instant_record(unsigned api, uint32_t label, uint64_t extra, struct sl_instant_details details);

/*
 * Calls that change nothing where the same call was made before.  cuBLAS asks for a kernel's function at most matrix products, and
 * frameworks set the device that is set.  Only the first such call is an event (ONCE in hooks/verbs.h).
 *
 * Any thread, a signal handler too.  It takes no lock and asks no driver.  The table may forget, which costs one more event.
 */

/* Code is unloaded, a context ends or a recording begins: handles may be used again, so everything is forgotten. */
void sl_known_forget(void);

/* The name by which a module or library is asked for code; 0: there is none, and the call is never known. */
uint64_t sl_known_name(uint64_t object, const char *name);

/* Code was asked for by `what`, a handle or a name from above. */
bool sl_known_code(uint64_t what);

/*
 * The answer was `handle`; `asked`: what sl_known_code said.  True: the answer was the same before.  A library's kernel has a
 * function in each context, so a known kernel with another function is another load.  Not kept for a thread that does not record.
 */
bool sl_known_answer(uint64_t what, uint64_t handle, bool asked);

/* The thread set this device last, and no context has ended since.  `set`: it has just done so. */
bool sl_known_device(int device, bool set);

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

#define SL_LABELS_DEPTH	   32u
#define SL_LABELS_TEXT_MAX 256u /* longer labels are cut */

/* A label and its index; label 0 is none.  details: NCCL's payload of its own range. */
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

/* A recorded call where STORMLOG_INJECT_OOM or STORMLOG_LIMIT is set (gpu/limit.c): what is refused, claimed and counted. */

/* Before the real call: sets frame->inject and frame->refuse, and claims the call's bytes. */
void sl_limited_open(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *in);

/* After it; place: of the allocation or of the context, where the call succeeded. */
void sl_limited_close(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *out, bool ok,
		      struct sl_vendor_context place);

/*
 * From a wrapper to the ring.  A wrapper, expanded from a row of hooks/ (hooks.c), does
 *
 *	struct sl_frame frame;
 *	if (!sl_record_open(&frame, api, caller, &inputs))	slot visible as in flight
 *		return real(...);
 *	result = sl_record_refused(&frame) ? oom : real(...);
 *	sl_record_close(&frame, result, ok, &outputs);		slot done
 *
 * Calling thread only.  Nothing here allocates, locks, waits for the disk or changes errno.  The first call
 * of a process that is recorded starts the recording (preload.c); queries and look-ups do not come here.
 *
 * Nesting: a call made inside an outer recorded call of the same class is part of it (no event of its own; the
 * outer event names it as driver_api and takes its injected refusal).  One of another class is an event of
 * its own with the flag nested; a CALL row inside any outer call is part of it.
 */

/* False: the process does not record, or the caller is inside the agent.  Nothing is to be closed then. */
__attribute__((warn_unused_result)) bool sl_record_open(struct sl_frame *frame, unsigned api, const void *caller,
							const struct sl_fields *inputs);

/* True: the call is not made and its result is out of memory (inject, limit). */
static inline bool sl_record_refused(const struct sl_frame *frame)
{
	return frame->refuse;
}

/* ok: the call succeeded, so that outputs were read. */
void sl_record_close(struct sl_frame *frame, int64_t result, bool ok, const struct sl_fields *outputs);

/* A call that was only forwarded was worth an event after all. */
void sl_record_made(unsigned api, const void *caller, int64_t result, struct sl_fields *outputs);

/* A call that was only forwarded has returned out of memory: record it now, with the stack and the thread's device. */
void sl_record_failed(unsigned api, const void *caller, int64_t result);

/* What a framework's allocator was asked for, as events.def has it in `stream` and `object` of a block event. */
struct sl_asked {
	uint64_t stream, object;
	bool captured; /* the stream is being captured */
};

/*
 * An instant: a framework's allocator took or gave back a block.  The stack is taken here.  asked: NULL where it is not known.
 * label: a text's id, what the framework calls it; 0: the range that is open.
 */
void sl_record_block(unsigned api, uint64_t address, uint64_t bytes, int device, uint64_t allocated, uint64_t reserved,
		     const struct sl_asked *asked, uint32_t label);

/* The same where all is as at the thread's last block event (sl_agent_thread.steady).  False: it is to be recorded as above. */
bool sl_record_block_again(unsigned api, uint64_t address, uint64_t bytes, int device, uint64_t allocated, uint64_t reserved,
			   const struct sl_asked *asked);

/*
 * Calls that were unwound: left by longjmp, an exception or the end of a thread, so that they never return to their wrapper.
 *
 * A wrapper links its frame, which is on its stack, into the thread's list of open calls.  After an unwinding the list still points
 * to that memory, which is the program's again.  The thread's next call finds out.  Stacks grow down, so a frame below the new one,
 * or at its place, has been unwound.  So has a frame whose check words the program has overwritten.  A signal handler on an
 * alternate stack lies below or above by chance and is truly inside.  The slots of unwound calls are completed with the flag
 * abandoned, because the ring would wait for them for ever, and what they claimed of --limit is given back.
 *
 * The agent's own work (sl_agent_begin) can be unwound too, by a signal handler: sl_unwound_inside finds it by its stack frame.
 *
 * Calling thread only; no allocation, no lock.
 */

#define SL_FRAME_CHECK 0x5354524d4c4f4721ull
#define SL_FRAME_OPEN  0x4f50454e4c4f4720ull /* slot_check of a frame that has no event, or not yet */
#define SL_FRAME_EVENT 1u /* in slot_check, whose other bits vouch for the slot: calls inside are part of the event */

/* Check word of a frame at the address `at`; `frame` is the frame itself or a copy. */
static inline uintptr_t sl_unwound_check(const struct sl_frame *frame, const struct sl_frame *at)
{
	return (uintptr_t)at ^ (uintptr_t)frame->outer >> 1 ^ (uintptr_t)frame->owner << 1 ^ (uintptr_t)SL_FRAME_CHECK;
}

static inline uintptr_t sl_unwound_slot_check(const struct sl_frame *frame)
{
	return ((uintptr_t)frame->slot ^ frame->seq << 1 ^ (uintptr_t)SL_FRAME_CHECK) | SL_FRAME_EVENT;
}

/* Is this a running call with an event of its own, either in the ring or counted as lost for want of room? */
static inline bool sl_unwound_is_event(const struct sl_frame *frame)
{
	return frame && frame->check == sl_unwound_check(frame, frame) && frame->slot_check == sl_unwound_slot_check(frame);
}

static inline bool sl_unwound_is_recorded(const struct sl_frame *frame)
{
	return sl_unwound_is_event(frame) && frame->slot;
}

/* A call of the thread begins in frame `now`: complete those that were unwound. */
void sl_unwound_drop(struct sl_agent_thread *thread, const struct sl_frame *now);

/* The same before an instant, which has no frame: an unwound call may be the thread's last for long, and hold up its ring. */
static inline __attribute__((always_inline)) void sl_unwound_drop_before_instant(struct sl_agent_thread *thread)
{
	if (SL_UNLIKELY(thread->top != NULL))
		sl_unwound_drop(thread, (const struct sl_frame *)__builtin_frame_address(0) - 1);
}

/* In a forked child: the calls that are open are the parent's, in a ring that is not ours. */
void sl_unwound_forget(struct sl_agent_thread *thread);

/* The thread ends: calls that are open have been unwound. */
void sl_unwound_end(struct sl_agent_thread *thread);

/* The caller is inside the agent's own work, and that has not been unwound. */
#define sl_unwound_inside() (SL_UNLIKELY(sl_thread.inside) && sl_unwound_inside_at((uintptr_t)__builtin_frame_address(0)))
bool sl_unwound_inside_at(uintptr_t frame);
