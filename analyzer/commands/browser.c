/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

static int bell = -1; /* a byte written here opens the page */
static pid_t opener;

static void open_page(const char *folder)
{
	char path[PATH_MAX + 16], real[PATH_MAX];
	const char *browser = getenv("BROWSER");
	char *const argv[] = {(char *)(browser && *browser ? browser : "xdg-open"), real, NULL};
	pid_t child;
	posix_spawnattr_t attributes;
	sigset_t ignored;

	snprintf(path, sizeof(path), "%s/report.html", folder);
	posix_spawnattr_init(&attributes); /* signals with their defaults */
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGPIPE);
	sigaddset(&ignored, SIGXFSZ);
	posix_spawnattr_setsigdefault(&attributes, &ignored);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	if (!realpath(path, real) || posix_spawnp(&child, argv[0], NULL, &attributes, argv, environ))
		sl_escape_print(stderr, "stormlog-analyze: no %s here: open %s in a browser\n", argv[0], path);
}

void sl_browser_start(const char *folder)
{
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return;
	opener = fork();
	if (opener) {
		close(ends[0]);
		bell = ends[1];
		return;
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) == 1)
		open_page(folder);
	_exit(0);
}

void sl_browser_open(void)
{
	if (bell < 0 || write(bell, "", 1) != 1)
		return;
	close(bell);
	waitpid(opener, NULL, 0); /* so that its messages come before this program ends */
}
