/* SPDX-License-Identifier: MIT */
/*
 * Wraps posix_spawn, and the exits from a process that run no destructor (_exit, exec): everything that waits is written before
 * them.  And calls by which a process or a thread becomes another: unshare, setuid and its kin.  Safe in a vfork
 * child, and after a fork in a process with many threads: real functions are found without a lock.
 */
#include "agent/hooks/parts.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>

#include "agent/stacks/stacks.h"
#include "agent/process/plain.h"
#include "agent/symbols/symbols.h"

#define EXPORTED __attribute__((visibility("default")))

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wstack-usage=" /* lists have the caller's length, and the caller's are on a stack too */
#endif

/*
 * A library may have a function of its own under such a name, with other arguments: all six registers of integers are passed on,
 * and a whole one comes back.
 */
#define REGISTERS     long a, long b, long c, long d, long e, long f
#define PASSED	      a, b, c, d, e, f
#define WRAPPER(name) own_##name
#define EXPORTED_AS(name)                                                                                                          \
	EXPORTED long WRAPPER(name)(REGISTERS) __asm__(#name);                                                                     \
	EXPORTED long WRAPPER(name)(REGISTERS)

static long (*find(_Atomic(void *) *cache, const char *name))(REGISTERS)
{
	void *real = atomic_load_explicit(cache, memory_order_relaxed);

	if (!real) {
		real = sl_resolve_next(name);
		atomic_store_explicit(cache, real, memory_order_relaxed);
	}
	return (long (*)(REGISTERS))real;
}

#define NEW_USER_OR_MEMORY (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)

/* If no other library defines the function (no known system), the kernel's own is called.  Only a library's own returns. */
#define LEAVE(name, how)                                                                                                           \
	EXPORTED_AS(name)                                                                                                          \
	{                                                                                                                          \
		static _Atomic(void *) cache;                                                                                      \
		long (*real)(REGISTERS) = find(&cache, #name);                                                                     \
                                                                                                                                   \
		sl_preload_status((int)a);                                                                                         \
		sl_preload_finish(how);                                                                                            \
		while (!real)                                                                                                      \
			syscall(SYS_exit_group, (int)a);                                                                           \
		return real(PASSED);                                                                                               \
	}

/* Calls the real function with `before` and `after` around it; the caller sees the real function's errno. */
#define AROUND(name, absent, before, after)                                                                                        \
	EXPORTED_AS(name)                                                                                                          \
	{                                                                                                                          \
		static _Atomic(void *) cache;                                                                                      \
		long (*real)(REGISTERS) = find(&cache, #name), result;                                                             \
		int saved;                                                                                                         \
                                                                                                                                   \
		if (!real) {                                                                                                       \
			errno = ENOSYS;                                                                                            \
			return absent;                                                                                             \
		}                                                                                                                  \
		before;                                                                                                            \
		result = real(PASSED);                                                                                             \
		saved = errno;                                                                                                     \
		after;                                                                                                             \
		errno = saved;                                                                                                     \
		return result;                                                                                                     \
	}

#define KEEP(at)                                                                                                                   \
	do {                                                                                                                       \
		char *const *environment = (char *const *)(at);                                                                    \
                                                                                                                                   \
		SL_CHILDREN_KEEP(environment);                                                                                     \
		at = (long)environment;                                                                                            \
	} while (0)

#define EXEC(name, at) AROUND(name, -1, KEEP(at); sl_preload_finish("exec"), sl_preload_resume())
#define OWN(name, with)                                                                                                            \
	AROUND(name, -1, if (sl_children_room(__environ)) return with((const char *)a, (char *const *)b, __environ);               \
	       sl_preload_finish("exec"), sl_preload_resume())
#define AS_ONE(name) AROUND(name, -1, sl_preload_alone(), sl_preload_rights_changed())
#define PLAIN(name)  EXPORTED_AS(name);

#include "agent/hooks/exits.def"

#undef LEAVE
#undef EXEC
#undef OWN
#undef PLAIN
#undef AROUND
#undef AS_ONE
#define LEAVE(name, how)  {#name, WRAPPER(name)},
#define EXEC(name, at)	  {#name, WRAPPER(name)},
#define OWN(name, with)	  {#name, WRAPPER(name)},
#define PLAIN(name)	  {#name, WRAPPER(name)},
#define AROUND(name, ...) {#name, WRAPPER(name)},
#define AS_ONE(name)	  {#name, WRAPPER(name)},

static const struct {
	char name[16];
	long (*wrapper)(REGISTERS);
} wrappers[] = {
#include "agent/hooks/exits.def"
};

void *sl_exits_wrapper(const char *name)
{
	for (size_t i = 0; i < SL_COUNT(wrappers); i++)
		if (sl_plain_same(wrappers[i].name, name))
			return wrappers[i].wrapper;
	return NULL;
}

/*
 * Variadic calls cannot be passed on, so they do what the C library does: build a list on the stack and call the exec that
 * takes a list.
 */
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
