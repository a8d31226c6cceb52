/* SPDX-License-Identifier: MIT */
#include "agent/symbols/symbols.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/process/process.h"

#define TRY_NS	   20000000ull
#define TRIES	   50 /* so often, for a thread that has no processor yet */
#define LOOK_NS	   1000000
#define ASLEEP_MAX 20	/* looks in a row that find the process asleep although it has nothing to wait for */
#define LOOKS_MAX  2000 /* where /proc does not tell */

static _Atomic uint32_t tried, trial_tid;
static pthread_t trial;
static int (*join)(pthread_t, void **); /* pthread_tryjoin_np: does not wait, and asks the kernel for nothing */
static bool is_trial;			/* `trial` was made and is not joined yet */

static int stop(struct dl_phdr_info *info, size_t size, void *data)
{
	return 1;
}

/* This thread may wait for ever without harm, because it holds no lock. */
static void *try_locks(void *open_self)
{
	void *(*open)(const char *, int) = open_self;

	atomic_store(&trial_tid, (uint32_t)syscall(SYS_gettid));
	if (open)
		open(NULL, 1 /* RTLD_LAZY */);
	dl_iterate_phdr(stop, NULL);
	sl_objects_trust();
	atomic_store(&tried, 1);
	sl_agent_wake(&tried);
	return NULL;
}

/* Threads of the process, by the kernel; 0: not known. */
static uint64_t count_threads(void)
{
	char line[24];
	uint64_t threads = 0;

	return sl_procfile_find("/proc/self/status", "Threads:", line, sizeof(line)) && sl_procfile_digits(line, &threads) ? threads
															   : 0;
}

/* True when no thread that the fork left behind can hold the locks that making a thread takes: fork() has reset them, or
 * this process has made a thread. */
static bool is_fresh(void)
{
	return sl_objects_is_forked() || count_threads() > 1;
}

static void *nothing(void *unused)
{
	return unused;
}

/* What became of the copy: 0 it made a thread; else it did not, or it fell asleep for good and was killed. */
static int outcome(pid_t copy)
{
	const struct timespec step = {.tv_nsec = LOOK_NS};
	unsigned sleeping_looks = 0;
	int status = -1;

	for (unsigned looks = 0; looks < LOOKS_MAX && sleeping_looks < ASLEEP_MAX; looks++) {
		long got = syscall(SYS_wait4, copy, &status, WNOHANG | __WALL, NULL);

		if (got == copy || (got < 0 && errno != EINTR))
			return status;
		/* Checks its parent as well: /proc may be another pid namespace's. */
		sleeping_looks = sl_procfile_state((uint64_t)copy) == 'S' &&
						 sl_procfile_parent((uint64_t)copy) == (uint64_t)syscall(SYS_getpid)
					 ? sleeping_looks + 1
					 : 0;
		syscall(SYS_nanosleep, &step, NULL);
	}
	syscall(SYS_kill, copy, SIGKILL);
	while (syscall(SYS_wait4, copy, &status, __WALL, NULL) < 0 && errno == EINTR)
		;
	return -1;
}

/*
 * pthread_create takes locks that fork() resets but _Fork() and clone do not: malloc's, and glibc's of thread-local data.
 * If the thread that holds one is not in this process, whoever asks for it waits for ever, and that must not be a thread of
 * the program.  A copy of this process, which has the same locks, asks instead.  It sends no SIGCHLD, and no wait of the
 * program and no debugger sees it.
 */
static bool can_make_threads(int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))
{
	pthread_t thread;
	long copy;

	if (is_fresh())
		return true;
	copy = syscall(SYS_clone, CLONE_FILES | CLONE_FS | CLONE_UNTRACED, NULL, NULL, NULL, NULL);
	if (!copy)
		syscall(SYS_exit_group, create(&thread, NULL, nothing, NULL) != 0);
	return copy > 0 && outcome((pid_t)copy) == 0;
}

/* It waits for a lock; one that is ready to run only has no processor. */
static bool is_asleep(uint32_t tid)
{
	return tid && sl_procfile_state(tid) == 'S';
}

bool sl_threads_try(void)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	unsigned tries = 0;

	is_trial = false; /* of a parent's */
	if (sl_objects_trusted())
		return true;
	create = sl_resolve_symbol("pthread_create");
	join = sl_resolve_symbol("pthread_tryjoin_np");
	atomic_store(&tried, 0);
	atomic_store(&trial_tid, 0);
	if (!create || !can_make_threads(create) || create(&trial, NULL, try_locks, sl_resolve_symbol("dlopen")))
		return false;
	is_trial = true;
	do
		sl_agent_sleep(&tried, 0, TRY_NS);
	while (++tries < TRIES && !atomic_load(&tried) && !is_asleep(atomic_load(&trial_tid)));
	return true;
}

bool sl_threads_trying(void)
{
	if (is_trial && join && !join(trial, NULL))
		is_trial = false;
	return is_trial;
}
