/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/stacks/stacks.h"
#include "agent/stacks/walk.h"
#include "agent/symbols/objects.h"
#include "agent/symbols/resolve.h"
#include "agent/symbols/valgrind.h"

_Atomic uintptr_t sl_stacks_inner_callers[SL_STACKS_INNER_CALLERS];

/* The thread is in a handler on its alternate stack, and the outer call's frame is elsewhere. */
static bool is_on_alternate_stack(uintptr_t outer)
{
	stack_t now;

	return sl_walk_is_on_alternate_stack(&now) && outer - (uintptr_t)now.ss_sp >= now.ss_size;
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

/*
 * What a handler interrupted that is still running; NULL: no such frame is found between `inner` and `outer`.  The kernel aligns
 * the frame so that the handler finds the stack as any function does.
 */
static const ucontext_t *find_signal_frame(uintptr_t inner, uintptr_t outer)
{
	uintptr_t at = (inner & ~(uintptr_t)15) + 8, page = 0;
	const ucontext_t *found = NULL;
	uint64_t blocked;

	if (outer - at > SEARCHED_BYTES || syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &blocked, sizeof(blocked)))
		return NULL;
	sl_valgrind_hush(1);
	for (; !found && at + sizeof(struct signal_frame) <= outer; at += 16) {
		uintptr_t last = at + sizeof(struct signal_frame) - 1;

		if (last >> 12 != page && !sl_walk_readable(last))
			break;
		page = last >> 12;
		if (is_running((const struct signal_frame *)at, outer, blocked))
			found = &((const struct signal_frame *)at)->context;
	}
	sl_valgrind_hush(-1);
	return found;
}

static uintptr_t interrupted_code(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

static uintptr_t interrupted_stack(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

/* They wait for another process or thread, or for time.  malloc and the loader hold no lock while they make one of these. */
static const uint16_t waits[] = {
	SYS_poll,   SYS_ppoll,	 SYS_select,   SYS_pselect6,	  SYS_epoll_wait, SYS_epoll_pwait,
	SYS_wait4,  SYS_waitid,	 SYS_pause,    SYS_rt_sigsuspend, SYS_nanosleep,  SYS_clock_nanosleep,
	SYS_accept, SYS_accept4, SYS_recvfrom, SYS_recvmsg,
};

/*
 * The handler interrupted one of these.  Either the kernel ended it with EINTR, and the code goes on behind it (mov $number, %eax;
 * syscall), or it makes the call again (SA_RESTART), and the code goes on at it.
 */
static bool interrupts_a_wait(const ucontext_t *context)
{
	uintptr_t code = interrupted_code(context);
	int64_t number = context->uc_mcontext.gregs[REG_RAX];
	uint8_t bytes[7];

	if (number != -EINTR)
		code += 2;
	if (!sl_walk_readable(code - 7) || !sl_walk_readable(code - 1))
		return false;
	memcpy(bytes, (const void *)(code - 7), sizeof(bytes));
	if (bytes[5] != 0x0f || bytes[6] != 0x05)
		return false;
	if (number == -EINTR)
		number = bytes[0] == 0xb8 ? bytes[1] | bytes[2] << 8 | bytes[3] << 16 : -1;
	for (unsigned i = 0; i < SL_COUNT(waits); i++)
		if (number == waits[i])
			return true;
	return false;
}

#else

#define SEARCHED_BYTES 0

static const ucontext_t *find_signal_frame(uintptr_t inner, uintptr_t outer)
{
	return NULL;
}

static uintptr_t interrupted_code(const ucontext_t *context)
{
	return 0;
}

static uintptr_t interrupted_stack(const ucontext_t *context)
{
	return 0;
}

static bool interrupts_a_wait(const ucontext_t *context)
{
	return false;
}

#endif

/* For a stack that cannot be walked, because a frame on the way has no simple rule. */
static bool is_in_a_handler(uintptr_t outer)
{
	return find_signal_frame((uintptr_t)__builtin_frame_address(0), outer) || is_on_alternate_stack(outer);
}

bool sl_stacks_find_inside(const void *frame, const void *caller)
{
	enum sl_walk_way way;
	int saved = errno;
	uintptr_t sp;
	bool inside;

	way = sl_walk_way_to(frame, &sp);
	inside = way == SL_WALK_INSIDE || (way == SL_WALK_UNCLEAR && !is_in_a_handler((uintptr_t)frame));
	errno = saved;
	if (inside)
		atomic_store_explicit(sl_stacks_inner_caller(caller), (uintptr_t)caller, memory_order_relaxed);
	return inside;
}

/* malloc may be the program's own; the C library and its loader take locks that making a thread takes too. */
static const char *const allocators[] = {"malloc", "pthread_create", "dl_iterate_phdr", "__tls_get_addr"};

struct code {
	uintptr_t at, allocators[SL_COUNT(allocators)];
	bool allocates;
};

static int find_object(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct sl_objects_span span = sl_objects_span_of(info);
	struct code *code = data;

	if (code->at < span.begin || code->at >= span.end)
		return 0;
	code->allocates = false;
	for (unsigned i = 0; i < SL_COUNT(allocators); i++)
		code->allocates |= code->allocators[i] >= span.begin && code->allocators[i] < span.end;
	return 1;
}

/* Code in no object counts as well: whose it is is not known. */
static bool may_be_allocating(uintptr_t interrupted)
{
	struct code code = {.at = interrupted, .allocates = true};

	for (unsigned i = 0; i < SL_COUNT(allocators); i++)
		code.allocators[i] = (uintptr_t)sl_resolve_symbol(allocators[i]);
	sl_objects_walk(find_object, &code);
	return code.allocates;
}

bool sl_stacks_may_allocate(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), sp = 0;
	const ucontext_t *context = NULL;
	int saved = errno;
	bool may = true;

	switch (sl_walk_way_to((const void *)UINTPTR_MAX, &sp)) {
	case SL_WALK_ENTERED:
		context = (const ucontext_t *)sp;
		break;
	case SL_WALK_UNCLEAR:
		context = find_signal_frame(here, here + SEARCHED_BYTES / 2);
		may = context || !is_on_alternate_stack(0);
		break;
	default:
		break;
	}
	if (context) {
		sp = interrupted_stack(context);
		may = (interrupts_a_wait(context) || !may_be_allocating(interrupted_code(context))) &&
		      !find_signal_frame(sp, sp + SEARCHED_BYTES / 2); /* a handler that interrupted another */
	}
	errno = saved;
	return may;
}

bool sl_stacks_on_alternate(void)
{
	int saved = errno;
	stack_t now;
	bool is = sl_walk_is_on_alternate_stack(&now);

	errno = saved;
	return is;
}

bool sl_stacks_interrupts(const void *frame)
{
	int saved = errno;
	uintptr_t sp;
	enum sl_walk_way way = sl_walk_way_to(frame, &sp);
	bool interrupts = way == SL_WALK_ENTERED || (way == SL_WALK_UNCLEAR && is_in_a_handler((uintptr_t)frame));

	errno = saved;
	return interrupts;
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
