/* SPDX-License-Identifier: MIT */
/*
 * Wraps posix_spawn, and the exits from a process that run no destructor (_exit, exec): everything that waits is written before
 * them.  And calls by which a process or a thread becomes another: unshare, setuid and its kin, sigaltstack.  Safe in a vfork
 * child, and after a fork in a process with many threads: real functions are found without a lock.
 */
#include <alloca.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/hooks/children.h"
#include "agent/preload.h"
#include "agent/stacks/stacks.h"
#include "agent/symbols/resolve.h"

#define EXPORTED __attribute__((visibility("default")))

static void *find(_Atomic(void *) *cache, const char *name)
{
	void *real = atomic_load_explicit(cache, memory_order_relaxed);

	if (!real) {
		real = sl_resolve_next(name);
		atomic_store_explicit(cache, real, memory_order_relaxed);
	}
	return real;
}

/* Exits.  If no other library defines the function (no known system), the kernel's own is called. */
#define LEAVE(name, how)                                                                                                           \
	EXPORTED void name(int status)                                                                                             \
	{                                                                                                                          \
		static _Atomic(void *) cache;                                                                                      \
		void (*real)(int) = find(&cache, #name);                                                                           \
                                                                                                                                   \
		sl_preload_status(status);                                                                                         \
		sl_preload_finish(how);                                                                                            \
		if (real)                                                                                                          \
			real(status);                                                                                              \
		for (;;)                                                                                                           \
			syscall(SYS_exit_group, status);                                                                           \
	}

LEAVE(_exit, "_exit")
LEAVE(_Exit, "_exit")
LEAVE(quick_exit, "quick_exit")

/* Calls the real function with `before` and `after` around it; the caller sees the real function's errno. */
#define AROUND(name, prototype, arguments, before, after)                                                                          \
	EXPORTED int name prototype                                                                                                \
	{                                                                                                                          \
		static _Atomic(void *) cache;                                                                                      \
		int(*real) prototype = find(&cache, #name);                                                                        \
		int result, saved;                                                                                                 \
                                                                                                                                   \
		if (!real) {                                                                                                       \
			errno = ENOSYS;                                                                                            \
			return -1;                                                                                                 \
		}                                                                                                                  \
		before;                                                                                                            \
		result = real arguments;                                                                                           \
		saved = errno;                                                                                                     \
		after;                                                                                                             \
		errno = saved;                                                                                                     \
		return result;                                                                                                     \
	}

/* exec: if it fails, the recording goes on. */
#define EXEC(name, prototype, arguments)                                                                                           \
	AROUND(name, prototype, arguments, SL_CHILDREN_KEEP(envp); sl_preload_finish("exec"), sl_preload_resume())

EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp))
EXEC(fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp))
EXEC(execveat, (int dir, const char *path, char *const argv[], char *const envp[], int flags), (dir, path, argv, envp, flags))

EXPORTED int execv(const char *path, char *const argv[])
{
	return execve(path, argv, __environ);
}

EXPORTED int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, __environ);
}

/* The spawn functions return an error number and leave errno as it was. */
#define SPAWN(name)                                                                                                                \
	EXPORTED int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files, const posix_spawnattr_t *how,     \
			  char *const argv[], char *const envp[])                                                                  \
	{                                                                                                                          \
		static _Atomic(void *) cache;                                                                                      \
		__typeof__(&name) real = find(&cache, #name);                                                                      \
                                                                                                                                   \
		SL_CHILDREN_KEEP(envp);                                                                                            \
		return real ? real(pid, path, files, how, argv, envp) : ENOSYS;                                                    \
	}

SPAWN(posix_spawn)
SPAWN(posix_spawnp)

/* The kernel allows these only in a process of one thread. */
#define NEW_USER_OR_MEMORY (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)
AROUND(unshare, (int flags), (flags), if (flags & NEW_USER_OR_MEMORY) sl_preload_alone(), sl_preload_not_alone())
AROUND(setns, (int fd, int kind), (fd, kind), sl_preload_alone(), sl_preload_not_alone())

AROUND(fork, (void), (), sl_preload_uncounted(), )

/*
 * The C library makes each of these calls on every thread, and ends the process where the results differ.  The writer's result
 * may: it lacks what the calling thread alone was given or has lost (PR_SET_KEEPCAPS, capset, seccomp).  So the writer ends before
 * the call.  The one that is started afterwards inherits the rights of the calling thread.
 */
#define AS_ONE(name, prototype, arguments) AROUND(name, prototype, arguments, sl_preload_alone(), sl_preload_rights_changed())

AS_ONE(setuid, (uid_t user), (user))
AS_ONE(seteuid, (uid_t user), (user))
AS_ONE(setreuid, (uid_t real_one, uid_t user), (real_one, user))
AS_ONE(setresuid, (uid_t real_one, uid_t user, uid_t saved_one), (real_one, user, saved_one))
AS_ONE(setgid, (gid_t group), (group))
AS_ONE(setegid, (gid_t group), (group))
AS_ONE(setregid, (gid_t real_one, gid_t group), (real_one, group))
AS_ONE(setresgid, (gid_t real_one, gid_t group, gid_t saved_one), (real_one, group, saved_one))
AS_ONE(setgroups, (size_t count, const gid_t *groups), (count, groups))
AS_ONE(initgroups, (const char *user, gid_t group), (user, group)) /* calls the C library's own setgroups */

/* The program may have the old one written over the new one: then it is put aside until the new one has been told. */
static void tell(const stack_t *stack, stack_t *old, const stack_t *aside)
{
	sl_stacks_tell_alternate(stack);
	if (stack == old)
		*old = *aside;
}

AROUND(sigaltstack, (const stack_t *stack, stack_t *old), (stack, stack == old ? &aside : old), stack_t aside,
       if (!result && stack) tell(stack, old, &aside))

/*
 * Variadic calls cannot be passed on, so they do what the C library does: build a list on the stack and call the exec that
 * takes a list.
 */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wstack-usage=" /* the list has the caller's length, and the caller's is on a stack too */
#endif
#define COLLECT(argv, first, list)                                                                                                 \
	char **argv;                                                                                                               \
	va_list list;                                                                                                              \
	do {                                                                                                                       \
		size_t count = 1;                                                                                                  \
                                                                                                                                   \
		va_start(list, first);                                                                                             \
		while (va_arg(list, char *))                                                                                       \
			count++;                                                                                                   \
		va_end(list);                                                                                                      \
		argv = alloca((count + 1) * sizeof(*argv));                                                                        \
		argv[0] = (char *)first;                                                                                           \
		va_start(list, first);                                                                                             \
		for (size_t i = 1; i <= count; i++)                                                                                \
			argv[i] = va_arg(list, char *);                                                                            \
	} while (0)

EXPORTED int execl(const char *path, const char *first, ...)
{
	COLLECT(argv, first, list);
	va_end(list);
	return execv(path, argv);
}

EXPORTED int execlp(const char *file, const char *first, ...)
{
	COLLECT(argv, first, list);
	va_end(list);
	return execvp(file, argv);
}

EXPORTED int execle(const char *path, const char *first, ...)
{
	char **envp;

	COLLECT(argv, first, list);
	envp = va_arg(list, char **);
	va_end(list);
	return execve(path, argv, envp);
}
