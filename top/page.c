/* SPDX-License-Identifier: MIT */
/*
 * Writes report.html for this moment: stormlog-analyze makes it, in the current folder, while the screen goes on.  Once this
 * program reads traces it may start no other program, so a child that was forked before does.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "top/top.h"

#define NAMES_MAX (64 << 10) /* bytes for the names of all traces */

/* The analyzer beside this program, installed or built; else the one in PATH. */
static void analyzer(char *path, size_t size)
{
	static const char *const places[] = {"stormlog-analyze", "../analyzer/stormlog-analyze"};
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[length > 0 ? length : 0] = 0;
	if (strrchr(own, '/'))
		*strrchr(own, '/') = 0;
	for (size_t i = 0; i < SL_COUNT(places); i++) {
		snprintf(path, size, "%s/%s", own, places[i]);
		if (!access(path, X_OK))
			return;
	}
	snprintf(path, size, "stormlog-analyze");
}

/* The child, which reads no trace.  It receives the names of traces; it knows the folder already. */
_Noreturn static void write_pages(int line)
{
	static char names[NAMES_MAX + 1], program[PATH_MAX + 40], folder[64], said[160], *argv[NAMES_MAX / 2 + 6];
	ssize_t got;

	analyzer(program, sizeof(program));
	while ((got = read(line, names, NAMES_MAX)) > 0) {
		unsigned at = 0;
		time_t now = time(NULL);
		struct tm local;
		int status = 1;
		pid_t child;

		names[got] = 0;
		strftime(folder, sizeof(folder), "stormlog-page-%Y%m%d-%H%M%S", localtime_r(&now, &local));
		argv[at++] = program;
		argv[at++] = (char *)"report";
		argv[at++] = (char *)"--quiet";
		argv[at++] = (char *)"-o";
		argv[at++] = folder;
		argv[at++] = (char *)"--";
		for (char *name = names; name < names + got; name += strlen(name) + 1)
			argv[at++] = name;
		argv[at] = NULL;
		child = fork();
		if (!child) {
			execvp(program, argv);
			_exit(127);
		}
		if (child > 0)
			waitpid(child, &status, 0);
		snprintf(said, sizeof(said), status ? "%s could not be written" : "%s/report.html is there", folder);
		if (write(line, said, strlen(said)) < 0)
			break;
	}
	_exit(0);
}

void sl_top_page_start(struct sl_top *top)
{
	int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	top->page_line = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	if (!fork()) {
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		close(ends[1]);
		write_pages(ends[0]);
	}
	close(ends[0]);
	close(null);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	top->page_line = ends[1];
}

void sl_top_page_ask(struct sl_top *top)
{
	static char names[NAMES_MAX];
	size_t used = 0;

	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		size_t length = strlen(sl_top_process(top, i)->process.trace->name) + 1;

		if (!sl_top_shown(top, i))
			continue;
		if (used + length > sizeof(names))
			break;
		memcpy(names + used, sl_top_process(top, i)->process.trace->name, length);
		used += length;
	}
	if (!used || top->page_line < 0 || write(top->page_line, names, used) != (ssize_t)used)
		snprintf(top->said, sizeof(top->said), "no page: it has no recording");
	else
		snprintf(top->said, sizeof(top->said), "the page of this moment is being written");
}

void sl_top_page_take(struct sl_top *top)
{
	char said[sizeof(top->said)];
	ssize_t got = top->page_line < 0 ? 0 : read(top->page_line, said, sizeof(said) - 1);

	if (got > 0)
		snprintf(top->said, sizeof(top->said), "%.*s", (int)got, said);
}
