/* SPDX-License-Identifier: MIT */
#include "tools/server/child/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define MEMORY_MAX (3ull << 30)
#define FILE_MAX   (1ull << 30) /* most bytes of an unpacked pack */
#define CPU_MAX_S  120
#define OPEN_MAX_  4096

static bool limit(int what, rlim_t max)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)what, &now))
		return false;
	now.rlim_max = now.rlim_max < max ? now.rlim_max : max;
	now.rlim_cur = now.rlim_max;
	return !setrlimit((__rlimit_resource_t)what, &now);
}

bool sl_cage_limits(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	signal(SIGXFSZ, SIG_IGN);  /* a file that grows too large is then an error of write */
#if !defined(__SANITIZE_ADDRESS__) /* AddressSanitizer's shadow needs terabytes of address space */
	if (!limit(RLIMIT_AS, MEMORY_MAX))
		return false;
#endif
	return limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, FILE_MAX) && limit(RLIMIT_CPU, CPU_MAX_S) &&
	       limit(RLIMIT_NOFILE, OPEN_MAX_);
}

/*
 * The system calls that malloc, stdio, threads and reading files need, on any architecture; those an architecture lacks are
 * left out.
 */
static const int calls[] = {
	SCMP_SYS(brk),		 SCMP_SYS(mmap),
	SCMP_SYS(mmap2),	 SCMP_SYS(munmap),
	SCMP_SYS(mremap),	 SCMP_SYS(mprotect),
	SCMP_SYS(madvise),	 SCMP_SYS(read),
	SCMP_SYS(pread64),	 SCMP_SYS(readv),
	SCMP_SYS(write),	 SCMP_SYS(writev),
	SCMP_SYS(lseek),	 SCMP_SYS(close),
	SCMP_SYS(fstat),	 SCMP_SYS(fstat64),
	SCMP_SYS(newfstatat),	 SCMP_SYS(fstatat64),
	SCMP_SYS(stat),		 SCMP_SYS(lstat),
	SCMP_SYS(statx),	 SCMP_SYS(access),
	SCMP_SYS(faccessat),	 SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),	 SCMP_SYS(readlinkat),
	SCMP_SYS(getcwd),	 SCMP_SYS(getdents64),
	SCMP_SYS(fcntl),	 SCMP_SYS(fadvise64),
	SCMP_SYS(futex),	 SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),		 SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sched_yield),	 SCMP_SYS(getpid),
	SCMP_SYS(gettid),	 SCMP_SYS(tgkill),
	SCMP_SYS(rt_sigaction),	 SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),	 SCMP_SYS(sigaltstack),
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),	 SCMP_SYS(gettimeofday),
	SCMP_SYS(getrandom),	 SCMP_SYS(sysinfo),
	SCMP_SYS(uname),	 SCMP_SYS(exit),
	SCMP_SYS(exit_group),	 SCMP_SYS(restart_syscall),
	SCMP_SYS(ftruncate),	 SCMP_SYS(dup),
};

/* open is allowed only with flags for reading.  openat2 hides its flags behind a pointer and is refused altogether. */
static bool allow_reading(scmp_filter_ctx filter)
{
	const unsigned writing = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
	int failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, writing, O_RDONLY));

	seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, writing, O_RDONLY));
	return !failed;
}

/* Only threads of this process may be made.  clone3 is refused, and the C library then uses clone. */
static bool allow_threads(scmp_filter_ctx filter)
{
	const unsigned thread = 0x10000 /* CLONE_THREAD */;

	return !seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, thread, thread));
}

#if defined(__SANITIZE_ADDRESS__)
/* LeakSanitizer traces its own process, which the cage refuses; at the end a child leaves its memory to the kernel anyway. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

bool sl_cage_close(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	bool fine = limit(RLIMIT_FSIZE, SL_CAGE_FILE_MAX) && filter && allow_reading(filter) && allow_threads(filter);
	int error;

	for (size_t i = 0; fine && i < sizeof(calls) / sizeof(calls[0]); i++)
		seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	error = fine ? seccomp_load(filter) : -ENOMEM;
	if (filter)
		seccomp_release(filter);
	errno = -error;
	return !error;
}
