/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into the analyzer: sends SIGNAL right after a temporary folder or the telemetry folder in it was made, after two folders were
 * exchanged, or before or after an unfinished file is opened (MOMENT says which), and waits so that the signal can act.
 * "no exchange": as on a file system that cannot, with time for others between two renames.
 * "no blocks": as on one that does not say what a file takes.  "order": says what is synced, renamed and removed; "full": there is no
 * room for what is synced.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void moment(const char *name)
{
	if (strcmp(getenv("MOMENT"), name))
		return;
	dprintf(2, "moment: %s\n", name);
	kill(getpid(), atoi(getenv("SIGNAL")));
	usleep(200000);
}

static bool is_made(const char *path)
{
	return strlen(path) > 5 && !strcmp(path + strlen(path) - 5, ".made");
}

static void tell(const char *what, const char *name)
{
	if (!strcmp(getenv("MOMENT"), "order"))
		dprintf(2, "order: %s %s\n", what, name);
}

int fsync(int file)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
	char link[64], name[4096] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	if (readlink(link, name, sizeof(name) - 1) > 0)
		tell("sync", name);
	if (!strcmp(getenv("MOMENT"), "full")) {
		errno = ENOSPC;
		return -1;
	}
	return real(file);
}

char *mkdtemp(char *pattern)
{
	char *(*real)(char *) = dlsym(RTLD_NEXT, "mkdtemp");
	char *made = real(pattern);

	moment("made");
	return made;
}

int mkdir(const char *path, mode_t mode)
{
	int (*real)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
	int status = real(path, mode);

	if (strstr(path, "/telemetry"))
		moment("entered");
	else if (is_made(path))
		moment("made");
	return status;
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, "renameat2");
	int status;

	tell("rename", old);
	if (!strcmp(getenv("MOMENT"), "no exchange")) {
		errno = EINVAL;
		return -1;
	}
	status = real(from, old, to, new, flags);
	moment("exchanged");
	return status;
}

int rename(const char *old, const char *new)
{
	int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
	int status, error;

	tell("rename", old);
	status = real(old, new);
	error = errno;
	if (!strcmp(getenv("MOMENT"), "no exchange"))
		usleep(getpid() * 7919u % 20000);
	errno = error;
	return status;
}

int unlinkat(int folder, const char *name, int flags)
{
	int (*real)(int, const char *, int) = dlsym(RTLD_NEXT, "unlinkat");
	int status = real(folder, name, flags);

	tell("remove", name);
	return status;
}

int fstat64(int file, struct stat64 *st)
{
	int (*real)(int, struct stat64 *) = dlsym(RTLD_NEXT, "fstat64");
	int status = real(file, st);

	if (!strcmp(getenv("MOMENT"), "no blocks"))
		st->st_blocks = 0;
	return status;
}

static bool is_unfinished(const char *path)
{
	return strstr(path, ".part");
}

FILE *fopen64(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen64");
	FILE *file;

	if (!is_unfinished(path))
		return real(path, mode);
	moment("opens");
	file = real(path, mode);
	moment("opened");
	usleep(400000);
	return file;
}

int open64(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
	va_list arguments;
	mode_t mode;
	int file;

	va_start(arguments, flags);
	mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (!is_unfinished(path))
		return real(path, flags, mode);
	moment("opens");
	file = real(path, flags, mode);
	moment("opened");
	usleep(400000);
	return file;
}

/* Makes the thread that removes unfinished files slow to end the process. */
sighandler_t signal(int number, sighandler_t handler)
{
	sighandler_t (*real)(int, sighandler_t) = dlsym(RTLD_NEXT, "signal");

	if (number == atoi(getenv("SIGNAL")))
		usleep(400000);
	return real(number, handler);
}
