/* SPDX-License-Identifier: MIT */
#include <ucontext.h>

#include "agent/process/process.h"
#include "agent/stacks/inner.h"
#include "agent/stacks/stacks.h"
#include "agent/symbols/symbols.h"
#include "agent/process/valgrind.h"

_Atomic uintptr_t sl_stacks_inner_callers[SL_STACKS_INNER_CALLERS];

/* The thread is in a handler on its alternate stack, and the outer call's frame is elsewhere. */
static bool is_on_alternate_stack(uintptr_t outer)
{
	stack_t now;

	return sl_own_on_alternate(&now) && outer - (uintptr_t)now.ss_sp >= now.ss_size;
}

#ifdef __x86_64__

static uintptr_t interrupted_code(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

#define PRIVATE_WAITS(op) ((op) == 128 || (op) == 137 || (op) == 393) /* FUTEX_WAIT(_BITSET), private; by the real-time clock */

/* System calls that wait, and that a handler with SA_RESTART makes anew: malloc and the loader hold no lock while they make one. */
static const uint16_t waits[] = {SYS_wait4, SYS_waitid, SYS_accept, SYS_accept4, SYS_recvfrom, SYS_recvmsg};

/*
 * The handler interrupted a system call that waits.  The kernel ended it with EINTR, and the code goes on behind it: no call that
 * malloc makes ends so, but the futex of a lock.  Or it makes the call again, and the code goes on at it.
 */
static bool interrupts_a_wait(const ucontext_t *context)
{
	const greg_t *at = context->uc_mcontext.gregs;
	bool ended = at[REG_RAX] == -EINTR;
	uintptr_t code = interrupted_code(context) - (ended ? 2 : 0);
	uint8_t bytes[2];

	if (!sl_pages_readable(code) || !sl_pages_readable(code + 1))
		return false;
	memcpy(bytes, (const void *)code, sizeof(bytes));
	if (bytes[0] != 0x0f || bytes[1] != 0x05) /* syscall */
		return false;
	if (ended)
		return at[REG_RDI] < 4096 || !PRIVATE_WAITS(at[REG_RSI]);
	for (unsigned i = 0; i < SL_COUNT(waits); i++)
		if (at[REG_RAX] == waits[i])
			return true;
	return false;
}

#else

static uintptr_t interrupted_code(const ucontext_t *context)
{
	return 0;
}

static bool interrupts_a_wait(const ucontext_t *context)
{
	return false;
}

#endif

bool sl_stacks_find_inside(const void *frame, const void *caller)
{
	enum sl_walk_way way;
	int saved = errno;
	uintptr_t sp;
	bool inside;

	way = sl_walk_way_to(frame, &sp);
	inside = way == SL_WALK_INSIDE || (way == SL_WALK_UNCLEAR && !is_on_alternate_stack((uintptr_t)frame));
	errno = saved;
	if (inside)
		atomic_store_explicit(sl_stacks_inner_caller(caller), (uintptr_t)caller, memory_order_relaxed);
	return inside;
}

/* malloc may be the program's own; the C library and its loader take locks that making a thread takes too. */
enum { MALLOC, C_LIBRARY, ITS_THREADS, LOADER };
static const char *const allocators[] = {
	[MALLOC] = "malloc", [C_LIBRARY] = "dl_iterate_phdr", [ITS_THREADS] = "pthread_create", [LOADER] = "__tls_get_addr"};

struct code {
	uintptr_t at, allocators[SL_COUNT(allocators)];
	bool waits, allocates;
};

static int find_object(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct sl_objects_span span = sl_objects_span_of(info);
	struct code *code = data;
	bool has[SL_COUNT(allocators)];

	if (code->at < span.begin || code->at >= span.end)
		return 0;
	for (unsigned i = 0; i < SL_COUNT(allocators); i++)
		has[i] = code->allocators[i] >= span.begin && code->allocators[i] < span.end;
	code->allocates = has[LOADER] || (has[C_LIBRARY] || has[ITS_THREADS] ? !code->waits : has[MALLOC]);
	return 1;
}

/* Code in no object counts as well: whose it is is not known.  The C library's does not where it waits. */
static bool may_be_allocating(const ucontext_t *interrupted)
{
	struct code code = {.at = interrupted_code(interrupted), .waits = interrupts_a_wait(interrupted), .allocates = true};

	for (unsigned i = 0; i < SL_COUNT(allocators); i++)
		code.allocators[i] = (uintptr_t)sl_resolve_symbol(allocators[i]);
	sl_objects_walk(find_object, &code);
	return code.allocates;
}

bool sl_stacks_may_allocate(void)
{
	int saved = errno;
	uintptr_t sp = 0;
	enum sl_walk_way way = sl_walk_way_to((const void *)UINTPTR_MAX, &sp);
	bool may = way == SL_WALK_ENTERED ? !may_be_allocating((const ucontext_t *)sp)
					  : way != SL_WALK_UNCLEAR || !is_on_alternate_stack(0);

	errno = saved;
	return may;
}

bool sl_stacks_on_alternate(void)
{
	int saved = errno;
	stack_t now;
	bool is = sl_own_on_alternate(&now);

	errno = saved;
	return is;
}

enum sl_stacks_work sl_stacks_work(const uintptr_t *frame)
{
	int saved = errno;
	uintptr_t sp;
	enum sl_walk_way way = sl_walk_way_to(frame, &sp);
	enum sl_stacks_work work = SL_STACKS_WORKING;

	if (way == SL_WALK_ENTERED || (way == SL_WALK_UNCLEAR && is_on_alternate_stack((uintptr_t)frame)))
		work = SL_STACKS_INTERRUPTED;
	else if (way == SL_WALK_OTHER || (way == SL_WALK_INSIDE && sp != (uintptr_t)(frame + 2))) /* base pointer, return address */
		work = SL_STACKS_LEFT;
	errno = saved;
	return work;
}

bool sl_stacks_has_room(uintptr_t bytes)
{
	int saved = errno;
	bool has = sl_own_has_room(bytes);

	errno = saved;
	if (!has)
		sl_objects_hole(SL_HOLE_ROOM);
	return has;
}

bool sl_stacks_could_take(uintptr_t bytes)
{
	int saved = errno;
	bool could = sl_own_could_take(bytes);

	errno = saved;
	return could;
}
