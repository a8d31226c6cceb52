/* SPDX-License-Identifier: MIT */
/* Preloaded, like libfaketime: every clock that the program reads shows a time in the past. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = (int)syscall(SYS_clock_gettime, CLOCK_REALTIME, now);

	(void)clock;
	now->tv_sec -= 86400;
	return result;
}
