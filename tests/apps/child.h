/* SPDX-License-Identifier: MIT */
/* A child made so that the C library's handlers of fork run, or so that they do not. */
#pragma once

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* how: "fork"; "_Fork", which an older C library has not: the program exits 77; "clone", the bare system call.  As fork returns. */
static inline pid_t make_child(const char *how)
{
	pid_t (*by_name)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, how);

	if (!strcmp(how, "clone"))
		return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (!by_name)
		exit(77);
	return by_name();
}
