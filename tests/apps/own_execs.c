/* SPDX-License-Identifier: MIT */
/* Preloaded, like fakechroot: it has its own execv, execvp and execve, which say that they are called. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static void *say(const char *name)
{
	(void)!write(STDOUT_FILENO, name, strlen(name));
	(void)!write(STDOUT_FILENO, "\n", 1);
	return dlsym(RTLD_NEXT, name);
}

int execv(const char *path, char *const argv[])
{
	__typeof__(&execv) real = (__typeof__(&execv))say("execv");

	return real(path, argv);
}

int execvp(const char *file, char *const argv[])
{
	__typeof__(&execvp) real = (__typeof__(&execvp))say("execvp");

	return real(file, argv);
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	__typeof__(&execve) real = (__typeof__(&execve))say("execve");

	return real(path, argv, envp);
}
