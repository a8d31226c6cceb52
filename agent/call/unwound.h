/* SPDX-License-Identifier: MIT */
/*
 * Calls that were unwound: left by longjmp, an exception or the end of a thread, so that they never return to their wrapper.
 *
 * Nobody tells us.  A wrapper links its frame (call.h), which lies on its stack, into the thread's list of open calls; if the call
 * is unwound, that memory is the program's again while the list still points to it.  The thread's next call finds out: stacks
 * grow down, so a frame below the new one, or where the new one lies, has been unwound; and so has a frame that the
 * program has written over, which its check words tell.  A signal handler on an alternate stack lies below or above by chance
 * and is truly inside.  The slots of unwound calls are completed with the flag abandoned, because the ring would wait for them for
 * ever, and what they claimed of --limit is given back.
 *
 * The agent's own work (sl_agent_begin) can be unwound too, by a signal handler: sl_unwound_inside finds it by its stack frame.
 *
 * Calling thread only; no allocation, no lock.
 */
#pragma once

#include "agent/process/agent.h"
#include "agent/call/call.h"

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
