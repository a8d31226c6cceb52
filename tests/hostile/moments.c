/* SPDX-License-Identifier: MIT */
/* Preloaded into the analyzer: SIGTERM comes right after a folder was made, or after two were exchanged, and has time to act. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void moment(const char *name)
{
	if (strcmp(getenv("MOMENT"), name))
		return;
	kill(getpid(), SIGTERM);
	usleep(200000);
}

char *mkdtemp(char *pattern)
{
	char *(*real)(char *) = dlsym(RTLD_NEXT, "mkdtemp");
	char *made = real(pattern);

	moment("made");
	return made;
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, "renameat2");
	int status = real(from, old, to, new, flags);

	moment("exchanged");
	return status;
}
