/* SPDX-License-Identifier: MIT */
/*
 * kill_inside self|fork|_Fork|clone: a process, this one or a child made by that call, is killed while it holds the lock of the
 * simulated machine.  Another process must have memory there: a new process looks in /proc, under the lock, whether that one lives.
 */
#include "child.h"
#include "gpu.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The simulator calls this one too, since the program's functions come first; _FILE_OFFSET_BITS gives both the same name. */
int open(const char *path, int flags, ...)
{
	int pid, mode;
	char rest;
	va_list list;
	va_start(list, flags);
	mode = va_arg(list, int);
	va_end(list);
	if (sscanf(path, "/proc/%d/sta%c", &pid, &rest) == 2 && pid != getpid())
		kill(getpid(), SIGKILL);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int main(int argc, char **argv)
{
	void *p;
	int status;
	pid_t child = 0;
	CHECK(argc == 2);
	if (strcmp(argv[1], "self"))
		child = make_child(argv[1]);
	if (!child) {
		OK(cudaMalloc(&p, MB));
		_exit(2); /* the simulator did not look in /proc */
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return 0;
}
