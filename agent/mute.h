/* SPDX-License-Identifier: MIT */
/*
 * Blocks the program's signals on this thread for a moment: a handler may leave by longjmp, and our work would stay half done.
 * By system call: sanitizers and the C library wrap sigprocmask.
 */
#pragma once

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
	/*
	 * Blocks all signals but the C library's own, by which setuid changes all threads.  Its handler returns; and a
	 * thread that is made now inherits the mask, so setuid would wait for that thread for ever.
	 */
	uint64_t all = ~(1ull << (SL_MUTE_SETXID - 1));
	struct sl_mute mute = {0};

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mute.before, sizeof(all));
	return mute;
}

static inline void sl_mute_end(const struct sl_mute *mute)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mute->before, NULL, sizeof(mute->before));
}
