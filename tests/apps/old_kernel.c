/* SPDX-License-Identifier: MIT */
/* Preloaded: makes madvise answer as a kernel before 4.14 does, which has no MADV_WIPEONFORK. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int madvise(void *at, size_t bytes, int advice)
{
	if (advice != 18)
		return (int)syscall(SYS_madvise, at, bytes, advice);
	errno = EINVAL;
	return -1;
}
