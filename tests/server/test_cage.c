/* SPDX-License-Identifier: MIT */
/* What a child can no longer do in its sandbox, and what it still can.  Each attempt is made in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/server/child/cage.h"

static char folder[] = "/tmp/stormlog-cage-XXXXXX";
static char victim[64], other[64];
static int opened; /* the victim, opened for writing before the sandbox closes */

/* Each of these returns true if the attempt succeeds. */
static bool writes(void)
{
	return open(victim, O_WRONLY) >= 0 || open(victim, O_RDWR) >= 0 || open(victim, O_RDONLY | O_TRUNC) >= 0;
}
static bool makes(void)
{
	return open(other, O_RDONLY | O_CREAT, 0600) >= 0 || !mkdir(other, 0700) || !symlink(victim, other) || !link(victim, other);
}
static bool removes(void)
{
	return !unlink(victim) || !rename(victim, other) || !truncate(victim, 0) || !chmod(victim, 0777);
}
static bool starts(void)
{
	char *argv[] = {"true", NULL};
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	execv("/bin/true", argv);
	return child > 0;
}
static bool talks(void)
{
	int pair[2];

	return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ||
	       !socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}
static bool disturbs(void)
{
	return !kill(getppid(), 0) || !ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}
static bool grows(void)
{
	return malloc((size_t)4 << 30) != NULL;
}

static bool fills(void)
{
	return lseek(opened, 64 << 20, SEEK_SET) == 64 << 20 && write(opened, "x", 1) == 1;
}
static bool fills_less(void)
{
	return lseek(opened, (64 << 20) - 1, SEEK_SET) > 0 && write(opened, "x", 1) == 1;
}

static void *thread(void *context)
{
	*(bool *)context = true;
	return NULL;
}

static bool reads(void)
{
	char byte;
	int fd = open(victim, O_RDONLY | O_CLOEXEC);
	bool ran = false;
	pthread_t it;

	return fd >= 0 && read(fd, &byte, 1) == 1 && !pthread_create(&it, NULL, thread, &ran) && !pthread_join(it, NULL) && ran &&
	       malloc(1 << 20);
}

static int in_cage(bool (*what)(void), bool caged)
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (caged && (!sl_cage_limits() || !sl_cage_close()))
			_exit(77);
		_exit(what());
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void nothing_but_reading_is_possible(void **state)
{
	static bool (*const deeds[])(void) = {writes, makes, removes, starts, talks, disturbs, grows, fills};

	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++)
		assert_int_equal(in_cage(deeds[i], true), 0);
	assert_int_equal(in_cage(reads, true), 1);
	assert_int_equal(in_cage(fills_less, true), 1);
}

static void the_same_is_possible_outside(void **state)
{
	assert_int_equal(in_cage(writes, false), 1);
	assert_int_equal(in_cage(talks, false), 1);
	assert_int_equal(in_cage(fills, false), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_but_reading_is_possible),
					   cmocka_unit_test(the_same_is_possible_outside)};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(victim, sizeof(victim), "%s/victim", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	opened = open(victim, O_WRONLY | O_CREAT, 0600);
	failed = write(opened, "x", 1) != 1 || cmocka_run_group_tests(tests, NULL, NULL);
	unlink(victim);
	rmdir(folder);
	return failed;
}
