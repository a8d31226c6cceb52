/* SPDX-License-Identifier: MIT */
/*
 * --watch: runs stormlog-analyze watch beside the command.  It has a process group of its own, so that the terminal's signals
 * go to the command.  It ends with us, and looks once more after the command has ended.
 */
#include "agent/launcher/launcher.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agent/process/process.h"

static pid_t watcher = -1;

/* The analyzer checks the rules even when it only prints its help. */
static bool rules_are_read(char **argv, unsigned count)
{
	pid_t child;
	int status;

	argv[count] = (char *)"--help";
	argv[count + 1] = NULL;
	child = fork();
	if (!child) {
		int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(nothing, STDOUT_FILENO);
		sl_child_signals_restore();
		execv(argv[0], argv);
		_exit(SL_LAUNCH_FAILED);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

bool sl_watcher_start(const struct sl_launch *run)
{
	char program[4096], run_id[sizeof(run->run_id)], **argv = calloc(2 * run->watch.count + 6, sizeof(*argv));
	unsigned count = 0;

	if (!argv || !sl_paths_analyzer(program, sizeof(program))) {
		sl_launcher_say("stormlog-analyze is not beside stormlog-run and not in PATH: no rule is watched");
		free(argv);
		return true;
	}
	strcpy(run_id, run->run_id);
	if (!*run_id)
		sl_identity_run_named(run_id, sizeof(run_id));
	argv[count++] = program;
	argv[count++] = (char *)"watch";
	for (size_t i = 0; i < run->watch.count; i++) {
		argv[count++] = (char *)"--rule";
		argv[count++] = (char *)run->watch.item[i];
	}
	if (!rules_are_read(argv, count)) {
		free(argv);
		return false;
	}
	argv[count++] = (char *)"--run";
	argv[count++] = run_id;
	if (!strchr(run->directory, '%')) /* with a placeholder it is found through the rings of this node's processes */
		argv[count++] = (char *)run->directory;
	watcher = fork();
	if (!watcher) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sl_close_inherited();
		dup2(STDERR_FILENO, STDOUT_FILENO);
		sl_child_signals_restore();
		execv(program, argv);
		_exit(SL_LAUNCH_FAILED);
	}
	free(argv);
	return true;
}

void sl_watcher_ended(pid_t pid)
{
	if (pid == watcher)
		watcher = -1;
}

void sl_watcher_end(void)
{
	int status;

	if (watcher <= 0)
		return;
	kill(watcher, SIGTERM);
	while (waitpid(watcher, &status, 0) < 0 && errno == EINTR)
		;
	watcher = -1;
}
