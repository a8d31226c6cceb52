/* SPDX-License-Identifier: MIT */
/*
 * Blocks the program's signals on this thread for a moment: a handler may leave by longjmp, and our work would stay half done.
 * By system call: sanitizers and the C library wrap sigprocmask.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SL_MUTE_BIT(signal) (1ull << ((signal)-1))

/* The C library's own.  By the second setuid changes all threads: it would wait for ever for one that is made now, muted. */
#define SL_MUTE_CANCEL 32
#define SL_MUTE_SETXID 33

/*
 * Faults of the thread's own work for which the program has a handler.  The kernel ends a process that blocks them then, and the
 * program may live by them: a filter whose system calls a broker makes (SIGSYS), pages or a time stamp counter that it lets fault.
 */
extern _Atomic uint64_t sl_mute_handled __attribute__((visibility("hidden")));

/* Asks the kernel for these handlers, or is told of all handlers that the program has. */
void sl_mute_look(void);
void sl_mute_tell(uint64_t handled);

struct sl_mute {
	uint64_t before; /* as the kernel has it: a bit for each of 64 signals */
};

static inline struct sl_mute sl_mute_begin(void)
{
	uint64_t others = ~(SL_MUTE_BIT(SL_MUTE_SETXID) | atomic_load_explicit(&sl_mute_handled, memory_order_relaxed));
	struct sl_mute mute = {0};

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &others, &mute.before, sizeof(others));
	return mute;
}

static inline void sl_mute_end(const struct sl_mute *mute)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mute->before, NULL, sizeof(mute->before));
}
