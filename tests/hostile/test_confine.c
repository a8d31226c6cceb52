/* SPDX-License-Identifier: MIT */
/* After sl_confine, code in the process cannot read or write elsewhere, execute or connect; what the analyzer needs still works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/base/confine.h"
#include "analyzer/base/lender.h"

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

/* The build id of a file as readelf has it. */
static bool build_id_of(const char *path, char *id, size_t size)
{
	char command[4200];
	FILE *said;

	snprintf(command, sizeof(command), "readelf -n '%s' 2>/dev/null | sed -n 's/.*Build ID: //p'", path);
	said = popen(command, "r");
	bool fine = said && fgets(id, (int)size, said);

	id[strcspn(id, "\n")] = 0;
	if (said)
		pclose(said);
	return fine;
}

/* The lender opens a file elsewhere only if it is a library or program with the recorded build id. */
static int lent(const char *program, const char *id)
{
	struct stat st;

	if (open(program, O_RDONLY) >= 0)
		return 10;
	if (sl_lender_open(program, id, &st) < 0)
		return 11;
	if (sl_lender_open(program, "00112233445566778899aabbccddeeff00112233", &st) >= 0 || errno != ESTALE)
		return 12;
	if (sl_lender_open(program, "", &st) >= 0)
		return 13;
	if (sl_lender_open(at("precious"), "", &st) >= 0 || errno != ENOEXEC)
		return 14;
	if (sl_lender_open(at("elsewhere"), "", &st) >= 0 || errno != EINVAL)
		return 15;
	return sl_lender_open(at("missing"), id, &st) >= 0 || errno != ENOENT ? 16 : 0;
}

/* Two processes ask at once, like the two of stormlog-top (screen, findings): each must get what it asked for. */
static int lent_to_two(const char *program, const char *id)
{
	pid_t child = fork();
	struct stat wanted, st;
	int wrong = 0, status;

	if (stat(program, &wanted))
		return 17;
	for (unsigned i = 0; i < 300 && !wrong; i++) {
		int fd = sl_lender_open(child ? program : at("precious"), child ? id : "", &st);

		wrong = child ? fd < 0 || st.st_ino != wanted.st_ino : fd >= 0 || errno != ENOEXEC;
		if (fd >= 0)
			close(fd);
	}
	if (!child)
		_exit(wrong);
	return wrong || waitpid(child, &status, 0) != child || status ? 18 : 0;
}

/* Returns an exit status that says what is wrong; 77: the kernel lacks Landlock. */
static int inside(const char *program, const char *id)
{
	const char *const writes[] = {at("out/analysis"), NULL}, *const reads[] = {at("in"), NULL};
	char *const argv[] = {"true", NULL};

	setenv("TMPDIR", at("tmp"), 1);
	sl_lender_start(NULL);
	if (!sl_confine(reads, writes, SL_CONFINE_BUT_FORK))
		return 77;
	if (!can_make(at("out/report.json")) || !can_make(at("tmp/x")) || mkdir(at("out/analysis"), 0700) ||
	    rename(at("out/report.json"), at("out/analysis/report.json")) || unlink(at("out/analysis/report.json")))
		return 1;
	if (can_make(at("elsewhere/x")) || can_make(at("precious")) || !unlink(at("precious")) ||
	    !rename(at("precious"), at("out/p")) || !truncate(at("precious"), 0) || !mkdir(at("new"), 0700) ||
	    !symlink("x", at("link")) || can_make(at("in/x")))
		return 2;
	if (open(at("in/trace"), O_RDONLY) < 0 || open("/usr/lib/os-release", O_RDONLY) < 0)
		return 3;
	if (open(at("precious"), O_RDONLY) >= 0 || open(at("elsewhere"), O_RDONLY | O_DIRECTORY) >= 0)
		return 4;
	if (!execv("/bin/true", argv) || errno != EACCES)
		return 5;
	if (can_connect(AF_INET, SOCK_STREAM) || can_connect(AF_INET, SOCK_DGRAM) || can_connect(AF_UNIX, SOCK_STREAM))
		return 6;
	int wrong = lent(program, id);

	return wrong ? wrong : lent_to_two(program, id);
}

static void what_runs_inside_stays_inside(void **state)
{
	char program[4096] = "", id[200];
	int status;
	pid_t child;

	strcpy(folder, "/var/tmp/sl-confine-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(at("out"), 0700) | mkdir(at("tmp"), 0700) | mkdir(at("elsewhere"), 0700) | mkdir(at("in"), 0700), 0);
	assert_true(can_make(at("precious")) && can_make(at("in/trace")));
	assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	if (!build_id_of(program, id, sizeof(id)))
		skip(); /* no readelf, or the linker wrote no build id */
	child = fork();
	if (!child)
		_exit(inside(program, id));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(access(at("precious"), F_OK), 0);
	if (WEXITSTATUS(status) == 77)
		skip(); /* no Landlock here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void *stop_from_a_thread(void *parent)
{
	pthread_kill(*(pthread_t *)parent, 0);
	kill(getpid(), SIGTSTP); /* as ncurses does */
	return NULL;
}

/* Threads, job control, limits of its own and abort() work as before; the filter alone holds, as where Landlock is missing. */
static void what_is_inside_may_signal_itself(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		pthread_t own = pthread_self(), thread;
		struct rlimit limit;

		setpgid(0, 0); /* a group without a parent outside of it is never stopped */
		sl_confine_calls(false);
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
