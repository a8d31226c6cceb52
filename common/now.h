/* SPDX-License-Identifier: MIT */
/* A clock of the system in nanoseconds. */
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"

/* By the C library. */
static inline uint64_t sl_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SL_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* By the kernel: for the agent, whose program may have replaced the C library's clocks (libfaketime). */
static inline uint64_t sl_now_kernel_ns(clockid_t clock)
{
	struct timespec now;

	syscall(SYS_clock_gettime, clock, &now);
	return (uint64_t)now.tv_sec * SL_NS_PER_S + (uint64_t)now.tv_nsec;
}
