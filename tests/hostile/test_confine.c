/* SPDX-License-Identifier: MIT */
/* Code that runs inside after sl_confine cannot write elsewhere, execute or connect; what the analyzer does, it still can. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/base/confine.h"

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

static bool can_connect(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool denied = connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno == EACCES;

	close(fd);
	return !denied; /* refused by nobody listening is not denied */
}

/* What is wrong, as an exit status; 77: the kernel cannot. */
static int inside(void)
{
	const char *const writes[] = {at("out/analysis"), NULL};
	char *const argv[] = {"true", NULL};

	setenv("TMPDIR", at("tmp"), 1);
	if (!sl_confine(writes))
		return 77;
	if (!can_make(at("out/report.json")) || !can_make(at("tmp/x")) || mkdir(at("out/analysis"), 0700) ||
	    rename(at("out/report.json"), at("out/analysis/report.json")) || unlink(at("out/analysis/report.json")))
		return 1;
	if (can_make(at("elsewhere/x")) || can_make(at("precious")) || !unlink(at("precious")) ||
	    !rename(at("precious"), at("out/p")) || !truncate(at("precious"), 0) || !mkdir(at("new"), 0700) ||
	    !symlink("x", at("link")))
		return 2;
	if (open(at("precious"), O_RDONLY) < 0)
		return 3;
	if (!execv("/bin/true", argv) || errno != EACCES)
		return 4;
	return can_connect() ? 5 : 0;
}

/* Landlock confines TCP from its ABI 4 on. */
static bool confines_tcp(void)
{
	enum { VERSION = 1 };

	return syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION) >= 4;
}

static void what_runs_inside_stays_inside(void **state)
{
	int status;
	pid_t child;

	strcpy(folder, "/tmp/sl-confine-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(at("out"), 0700) | mkdir(at("tmp"), 0700) | mkdir(at("elsewhere"), 0700), 0);
	assert_true(can_make(at("precious")));
	child = fork();
	if (!child)
		_exit(inside());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(access(at("precious"), F_OK), 0);
	if (WEXITSTATUS(status) == 77)
		skip(); /* no Landlock here */
	assert_int_equal(WEXITSTATUS(status), confines_tcp() ? 0 : 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_runs_inside_stays_inside)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
