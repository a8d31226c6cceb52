/* SPDX-License-Identifier: MIT */
#include "agent/call/call.h"
#include "agent/file/file.h"
#include "agent/stacks/stacks.h"

#define REFUSED_MAX 16

/*
 * An abandoned frame looks alive until the program overwrites it, where the stack cannot be followed.
 * A few calls that seem to be inside may be ours, or those of a signal handler that interrupted us.  Many in a row show that the
 * frame is dead.
 */
static bool too_many_refused(struct sl_agent_thread *thread)
{
	uint64_t next = thread->ring ? sl_ring_next(thread->ring) : 0;

	if (!thread->ring) /* the writer */
		return false;
	thread->refused = thread->refused_at == next ? thread->refused + 1 : 1;
	thread->refused_at = next;
	return thread->refused > REFUSED_MAX;
}

/* True: nobody has written over our work's frame, which may have been left.  AddressSanitizer is not told whose memory it is. */
static __attribute__((no_sanitize("address"))) bool is_whole(const struct sl_agent_thread *thread)
{
	return ((const uintptr_t *)thread->inside_at[0])[1] == thread->inside_check;
}

bool sl_unwound_inside_at(uintptr_t frame)
{
	struct sl_agent_thread *thread = &sl_thread;
	uint32_t depth = thread->inside;

	if (SL_LIKELY(!depth))
		return false;
	if (is_whole(thread) && (frame < thread->inside_at[0] || sl_stacks_on_alternate())) {
		enum sl_stacks_work work = depth <= SL_AGENT_WORKS && thread->ring
						   ? sl_stacks_work((const uintptr_t *)thread->inside_at[depth - 1])
						   : SL_STACKS_WORKING;

		if (work == SL_STACKS_INTERRUPTED)
			return false; /* a handler's call */
		if (work == SL_STACKS_WORKING && !too_many_refused(thread))
			return true;
	}
	thread->inside = 0;
	thread->refused = 0;
	sl_stacks_unwound();
	return false;
}

/*
 * Copies a frame that may have been left and that may lie where any call, ours and a signal handler's too, writes its own.
 * True: what the copy says of its slot and of outer calls can be trusted.  AddressSanitizer is not told whose memory it is.
 */
static __attribute__((no_sanitize("address"))) bool copy_whole(struct sl_frame *copy, const struct sl_frame *at)
{
	*copy = (struct sl_frame){.outer = at->outer,
				  .owner = at->owner,
				  .check = at->check,
				  .slot_check = at->slot_check,
				  .slot = at->slot,
				  .seq = at->seq};
	return copy->check == sl_unwound_check(copy, at) &&
	       (copy->slot_check == SL_FRAME_OPEN || (copy->slot_check | SL_FRAME_EVENT) == sl_unwound_slot_check(copy));
}

/* Every call that is open from slot number `seq` to `end` was left: the ring must not wait for it. */
static void abandon(struct sl_agent_thread *thread, uint64_t seq, uint64_t end)
{
	for (; seq < end; seq++) {
		struct sl_slot *slot = sl_ring_find(sl_agent->ring, thread->ring, seq);

		if (!slot || atomic_load_explicit(&slot->state, memory_order_relaxed) != SL_SLOT_WORD(seq, SL_SLOT_IN_FLIGHT, true))
			continue;
		if (SL_UNLIKELY(sl_limit_active))
			sl_limit_release_kept(&sl_ring_find(sl_agent->ring, thread->ring, seq + 1)->more.claim);
		sl_slot_add_flags(slot, SL_FLAG_abandoned);
		atomic_store_explicit(&slot->state, SL_SLOT_WORD(seq, SL_SLOT_DONE, true), memory_order_release);
	}
}

/*
 * A call that was left without returning (longjmp, exception, cancellation) is below the stack pointer or where this one
 * lies, or its frame has been written over.  A handler on an alternate stack is above or below by chance, and truly inside.
 */
void sl_unwound_drop(struct sl_agent_thread *thread, const struct sl_frame *now)
{
	struct sl_frame *top = thread->top, frame;

	while (top) {
		if (!copy_whole(&frame, top)) {
			abandon(thread, thread->open_seq, sl_ring_position(thread->ring));
			top = NULL;
			break;
		}
		if ((uintptr_t)top >= (uintptr_t)(now + 1) || ((uintptr_t)(top + 1) <= (uintptr_t)now && sl_stacks_on_alternate()))
			break;
		if (frame.slot)
			abandon(thread, frame.seq, frame.seq + 1);
		top = frame.outer;
	}
	thread->top = top;
}

void sl_unwound_forget(struct sl_agent_thread *thread)
{
	struct sl_frame copy;

	for (struct sl_frame *frame = thread->top; frame && copy_whole(&copy, frame); frame = copy.outer) {
		frame->slot = NULL;
		frame->claim.bytes = 0;
	}
	thread->top = NULL;
}

void sl_unwound_end(struct sl_agent_thread *thread)
{
	if (thread->top)
		abandon(thread, thread->open_seq, sl_ring_position(thread->ring));
	thread->top = NULL;
}
