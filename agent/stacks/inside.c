/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/process/kept.h"
#include "agent/stacks/stacks.h"
#include "agent/stacks/walk.h"
#include "agent/symbols/objects.h"

_Atomic uintptr_t sl_stacks_inner_callers[SL_STACKS_INNER_CALLERS];

/*
 * The thread is in a handler on its alternate stack, and the outer call's frame is elsewhere.  False where a seccomp filter
 * of the program might forbid the question.
 */
static bool is_on_alternate_stack(uintptr_t outer)
{
	stack_t now;

	return !sl_kept_sandboxed() && !syscall(SYS_sigaltstack, NULL, &now) && now.ss_flags & SS_ONSTACK &&
	       outer - (uintptr_t)now.ss_sp >= now.ss_size;
}

#ifdef __x86_64__

#define SEARCHED_BYTES 65536u

/* What the kernel puts below the stack pointer of what a handler interrupts. */
struct signal_frame {
	uintptr_t restorer;
	ucontext_t context;
};

/* mov $SYS_rt_sigreturn, %rax; syscall */
static const uint8_t restorer_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

/*
 * The frame belongs to a handler that is still running: the code that it interrupted lies between the frame and the outer
 * call, and had fewer signals blocked than are blocked now.  A frame left on the stack by a handler that returned has the
 * mask of now, since that was restored.
 */
static __attribute__((no_sanitize("address"))) bool is_running(const struct signal_frame *frame, uintptr_t outer, uint64_t blocked)
{
	uintptr_t interrupted = (uintptr_t)frame->context.uc_mcontext.gregs[REG_RSP];
	uint64_t before = frame->context.uc_sigmask.__val[0];

	return interrupted > (uintptr_t)frame && interrupted <= outer && !frame->context.uc_link && before != blocked &&
	       !(before & ~blocked) && sl_walk_readable(frame->restorer) &&
	       sl_walk_readable(frame->restorer + sizeof(restorer_code) - 1) &&
	       !memcmp((const void *)frame->restorer, restorer_code, sizeof(restorer_code));
}

/* The kernel aligns the frame so that the handler finds the stack as any function does. */
static bool has_signal_frame(uintptr_t outer)
{
	uintptr_t at = ((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)15) + 8, page = 0;
	uint64_t blocked;

	if (outer - at > SEARCHED_BYTES || syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &blocked, sizeof(blocked)))
		return false;
	for (; at + sizeof(struct signal_frame) <= outer; at += 16) {
		uintptr_t last = at + sizeof(struct signal_frame) - 1;

		if (last >> 12 != page && !sl_walk_readable(last))
			return false;
		page = last >> 12;
		if (is_running((const struct signal_frame *)at, outer, blocked))
			return true;
	}
	return false;
}

#else

static bool has_signal_frame(uintptr_t outer)
{
	return false;
}

#endif

/* It cannot be walked: a frame on the way has no simple rule. */
static bool is_in_a_handler(uintptr_t outer)
{
	return has_signal_frame(outer) || is_on_alternate_stack(outer);
}

bool sl_stacks_find_inside(const void *frame, const void *caller)
{
	enum sl_walk_way way;
	int saved = errno;
	bool inside;

	way = sl_walk_way_to(frame);
	inside = way == SL_WALK_INSIDE || (way == SL_WALK_UNCLEAR && !is_in_a_handler((uintptr_t)frame));
	errno = saved;
	if (inside)
		atomic_store_explicit(sl_stacks_inner_caller(caller), (uintptr_t)caller, memory_order_relaxed);
	return inside;
}

bool sl_stacks_has_room(uintptr_t bytes)
{
	int saved = errno;
	bool has = sl_walk_has_room(bytes);

	errno = saved;
	if (!has)
		sl_objects_hole(SL_HOLE_ROOM);
	return has;
}
