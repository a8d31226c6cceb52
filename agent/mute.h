/* SPDX-License-Identifier: MIT */
/*
 * A moment in which no signal handler of the program runs on this thread: one may leave by longjmp, and what was
 * half done would stay so.  By system call: sanitizers and the C library wrap sigprocmask.
 */
#ifndef AGENT_MUTE_H
#define AGENT_MUTE_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SL_MUTE_SETXID 33

struct sl_mute {
	uint64_t before; /* as the kernel has it: a bit for each of 64 signals */
};

static inline struct sl_mute sl_mute_begin(void)
{
	/* But the C library's own for setuid of all threads: its handler returns, and setuid waits for a thread made meanwhile,
	   which inherits this, for ever. */
	uint64_t all = ~(1ull << (SL_MUTE_SETXID - 1));
	struct sl_mute mute = {0};

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mute.before, sizeof(all));
	return mute;
}

static inline void sl_mute_end(const struct sl_mute *mute)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mute->before, NULL, sizeof(mute->before));
}

#endif
