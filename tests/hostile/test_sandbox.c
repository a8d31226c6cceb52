/* SPDX-License-Identifier: MIT */
/* After sl_sandbox, code in the process cannot write elsewhere, execute or connect; what the analyzer needs still works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/base/sandbox.h"

static char folder[64];

static const char *at(const char *name)
{
	static char path[4][128];
	static unsigned next;

	snprintf(path[++next % 4], sizeof(path[0]), "%s/%s", folder, name);
	return path[next % 4];
}

static bool can_make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool can_connect(int family, int type)
{
	return socket(family, type, 0) >= 0 || errno != EACCES;
}

/* Returns an exit status that says what is wrong.  narrow: the process may read its inputs only. */
static int inside(bool narrow)
{
	const char *const writes[] = {at("out/analysis"), NULL}, *const reads[] = {at("in"), NULL};
	char *const argv[] = {"true", NULL};

	setenv("TMPDIR", at("tmp"), 1);
	sl_sandbox(narrow ? reads : NULL, writes, 0);
	if (!can_make(at("out/report.json")) || !can_make(at("tmp/x")) || mkdir(at("out/analysis"), 0700) ||
	    rename(at("out/report.json"), at("out/analysis/report.json")) || unlink(at("out/analysis/report.json")))
		return 1;
	if (can_make(at("elsewhere/x")) || can_make(at("precious")) || !unlink(at("precious")) ||
	    !rename(at("precious"), at("out/p")) || !truncate(at("precious"), 0) || !mkdir(at("new"), 0700) ||
	    !symlink("x", at("link")) || can_make(at("in/x")))
		return 2;
	if (open(at("in/trace"), O_RDONLY) < 0 || (open(at("precious"), O_RDONLY) >= 0) == narrow ||
	    (open(at("elsewhere"), O_RDONLY | O_DIRECTORY) >= 0) == narrow)
		return 3;
	if (!execv("/bin/true", argv) || errno != EACCES)
		return 4;
	return can_connect(AF_INET, SOCK_STREAM) || can_connect(AF_INET, SOCK_DGRAM) || can_connect(AF_UNIX, SOCK_STREAM) ? 5 : 0;
}

static void what_runs_inside_stays_inside(void **state)
{
	if (syscall(444 /* landlock_create_ruleset */, NULL, 0, 1) < 1)
		skip();
	for (int narrow = 0; narrow < 2; narrow++) {
		int status;
		pid_t child;

		strcpy(folder, "/var/tmp/sl-sandbox-XXXXXX");
		assert_non_null(mkdtemp(folder));
		assert_int_equal(
			mkdir(at("out"), 0700) | mkdir(at("tmp"), 0700) | mkdir(at("elsewhere"), 0700) | mkdir(at("in"), 0700), 0);
		assert_true(can_make(at("precious")) && can_make(at("in/trace")));
		child = fork();
		if (!child)
			_exit(inside(narrow));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(access(at("precious"), F_OK), 0);
	}
}

static void *stop_from_a_thread(void *parent)
{
	pthread_kill(*(pthread_t *)parent, 0);
	kill(getpid(), SIGTSTP); /* as ncurses does */
	return NULL;
}

/* Threads, job control, limits of its own and abort() work as before; seccomp only, as where Landlock is missing. */
static void what_is_inside_may_signal_itself(void **state)
{
	static const char *const writes[] = {NULL};
	pid_t child = fork();
	int status;

	if (!child) {
		pthread_t own = pthread_self(), thread;
		struct rlimit limit;

		setpgid(0, 0); /* a group without a parent outside of it is never stopped */
		sl_sandbox(NULL, writes, SL_SANDBOX_PROCESSES);
		if (pthread_create(&thread, NULL, stop_from_a_thread, &own) || pthread_join(thread, NULL) || raise(0) ||
		    getrlimit(RLIMIT_FSIZE, &limit) || setrlimit(RLIMIT_FSIZE, &limit) || !kill(getppid(), 0))
			_exit(1);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		abort();
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
	kill(child, SIGCONT);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_runs_inside_stays_inside),
					   cmocka_unit_test(what_is_inside_may_signal_itself)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
