/* SPDX-License-Identifier: MIT */
/* Makes a child with or without the C library's fork handlers. */
#pragma once

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* how: "fork"; "_Fork" (exit 77 where the C library is too old for it); "clone", the bare system call.  Returns as fork does. */
static inline pid_t make_child(const char *how)
{
	pid_t (*by_name)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, how);

	if (!strcmp(how, "clone"))
		return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (!by_name)
		exit(77);
	return by_name();
}
