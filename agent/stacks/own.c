/* SPDX-License-Identifier: MIT */
#include "agent/stacks/inner.h"

#include <sys/auxv.h>
#include <sys/resource.h>

#include "agent/process/process.h"
#include "agent/process/valgrind.h"

#define OWN_MOST   (8u << 20)  /* bytes of the first thread's stack that are looked for at once */
#define KEPT_MOST  2048u       /* bytes behind the thread pointer that are searched; glibc keeps 2304 for a thread */
#define ABOVE_MOST (16u << 20) /* bytes of a thread's stack above the thread pointer */

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31) /* linux/signal.h, since 4.7 */
#endif

__thread struct sl_own sl_own;

extern void *__libc_stack_end __attribute__((weak)); /* musl has none */

static uintptr_t thread_pointer(void)
{
#ifdef __x86_64__
	uintptr_t at;

	__asm__("mov %%fs:0, %0" : "=r"(at));
	return at;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

/* What glibc keeps of a thread's stack, which lies around the thread pointer: begin, size, and size of the guard in it. */
static bool is_stack(const uintptr_t *fields, uintptr_t pointer)
{
	return pointer - fields[0] < fields[1] && fields[0] + fields[1] - pointer < ABOVE_MOST && fields[2] < fields[1];
}

/*
 * The C library does not tell its place.  It is found by its values, in a thread whose stack begins and ends with a page.
 * 0: not yet.
 */
static __attribute__((no_sanitize("address"))) unsigned find_kept(uintptr_t pointer)
{
	static _Atomic unsigned cached;
	unsigned found = atomic_load_explicit(&cached, memory_order_relaxed), count = 0, limit = KEPT_MOST;
	unsigned in_page = SL_PAGE - pointer % SL_PAGE;

	if (found)
		return found;
	if (in_page < limit && !sl_pages_readable(pointer + in_page))
		limit = in_page;
	for (unsigned at = sizeof(uintptr_t); at + 3 * sizeof(uintptr_t) <= limit; at += sizeof(uintptr_t)) {
		const uintptr_t *fields = (const uintptr_t *)(pointer + at);

		if ((fields[0] | fields[1]) % SL_PAGE || !fields[0] || !is_stack(fields, pointer))
			continue;
		found = at;
		count++;
	}
	if (count != 1)
		return 0;
	atomic_store_explicit(&cached, found, memory_order_relaxed);
	return found;
}

static void learn_own(void)
{
	uintptr_t pointer = thread_pointer(), end = 0;
	const uintptr_t *fields;
	unsigned at;

	sl_valgrind_hush(1); /* of a thread that had the same stack before, values are left */
	at = find_kept(pointer);
	fields = (const uintptr_t *)(pointer + at);
	if (at && sl_pages_readable(pointer + at) && sl_pages_readable(pointer + at + 2 * sizeof(*fields)) &&
	    is_stack(fields, pointer)) {
		sl_own.begin = fields[0] + fields[2];
		end = fields[0] + fields[1];
	} else if (&__libc_stack_end && syscall(SYS_gettid) == syscall(SYS_getpid)) {
		sl_own.begin = end = ((uintptr_t)__libc_stack_end + SL_PAGE - 1) & ~(uintptr_t)(SL_PAGE - 1);
		sl_own.grows = true;
	}
	sl_valgrind_hush(-1);
	atomic_signal_fence(memory_order_seq_cst);
	sl_own.end = end;
}

/* The kernel leaves a gap below the first thread's stack, which ends the search. */
SL_NOINLINE bool sl_own_reaches(uintptr_t sp)
{
	if (!sl_own.end)
		learn_own();
	if (!sl_own.grows || sl_own.begin - sp > OWN_MOST || sl_open_proc_sandboxed())
		return sl_own_is_known(sp);
	while (sl_own.begin > sp && sl_pages_readable(sl_own.begin - SL_PAGE))
		sl_own.begin -= SL_PAGE;
	return sl_own_is_known(sp);
}

/*
 * The first thread's stack grows, as far as the program's limit lets it.  At its end, behind the program's name, the kernel has put
 * one word.
 */
static bool grows_to(uintptr_t low, uintptr_t frame)
{
	const char *name;
	uintptr_t end;
	struct rlimit64 limit;

	if (!sl_own_has(frame) || !sl_own.grows)
		return false;
	name = (const char *)getauxval(AT_EXECFN);
	end = ((uintptr_t)name / SL_PAGE + 1) * SL_PAGE;
	if (!name || syscall(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit))
		return true;
	if (!memchr(name, 0, end - (uintptr_t)name))
		end += SL_PAGE;
	return end - low <= limit.rlim_cur;
}

bool sl_own_on_alternate(stack_t *alternate)
{
	return !sl_open_proc_sandboxed() && !syscall(SYS_sigaltstack, NULL, alternate) && alternate->ss_flags & SS_ONSTACK;
}

/* Asked anew each time: programs put guard pages where calls were made. */
bool sl_own_has_room(uintptr_t bytes)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0), low = (frame - bytes) / SL_PAGE * SL_PAGE;
	stack_t alternate;

	if (!sl_own_has(frame) && sl_own_on_alternate(&alternate))
		return frame - (uintptr_t)alternate.ss_sp >= bytes;
	for (uintptr_t page = low; page < frame; page += SL_PAGE)
		if (!sl_pages_readable(page)) /* for the kernel; below valgrind a stack grows without it */
			return grows_to(low, frame);
	return true;
}

bool sl_own_could_take(uintptr_t bytes)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	return sl_own_has(frame) && (sl_own.grows || frame - sl_own.begin >= bytes) && sl_own_has_room(bytes);
}
