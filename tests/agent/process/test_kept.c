/* SPDX-License-Identifier: MIT */
#include "tests/agent/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/process/process.h"

#define HIGHEST 5000

static char folder[] = "/tmp/stormlog-kept-XXXXXX";

static void path_of(char path[64], unsigned number)
{
	snprintf(path, 64, "%s/%u", folder, number);
}

static void write_file(unsigned number)
{
	char path[64];
	FILE *file;

	path_of(path, number);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%u\n", number);
	fclose(file);
}

static long read_file(unsigned number)
{
	char path[64], text[32];

	path_of(path, number);
	return sl_open_proc_read(path, text, sizeof(text)) > 0 ? atol(text) : -1;
}

static bool is_open(unsigned number)
{
	char path[64], link[40], target[64];

	path_of(path, number);
	for (int fd = 0; fd < HIGHEST; fd++) {
		ssize_t size;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		size = readlink(link, target, sizeof(target) - 1);
		target[size > 0 ? size : 0] = 0;
		if (!strcmp(target, path))
			return true;
	}
	return false;
}

static void a_file_that_is_not_there_is_not_sought_again(void **state)
{
	sl_open_proc_begin();
	assert_int_equal(read_file(1), -1);
	write_file(1);
	assert_int_equal(read_file(1), -1);
	sl_open_proc_begin();
	assert_int_equal(read_file(1), 1);
}

static void what_the_program_closed_is_opened_anew(void **state)
{
	sl_open_proc_begin();
	write_file(2);
	assert_int_equal(read_file(2), 2);
	assert_true(is_open(2));
	for (int fd = 3; fd < HIGHEST; fd++)
		close(fd);
	assert_int_equal(read_file(2), 2);
	assert_true(is_open(2));
}

static void the_file_that_was_read_longest_ago_makes_room(void **state)
{
	sl_open_proc_begin();
	for (unsigned i = 10; i < 40; i++) {
		write_file(i);
		assert_int_equal(read_file(i), i);
	}
	assert_true(is_open(10));
	assert_false(is_open(39));
	for (unsigned look = 0; look < 100; look++)
		for (unsigned i = 36; i < 40; i++)
			assert_int_equal(read_file(i), i);
	assert_false(is_open(10));
	for (unsigned i = 36; i < 40; i++)
		assert_true(is_open(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_is_not_there_is_not_sought_again),
		cmocka_unit_test(what_the_program_closed_is_opened_anew),
		cmocka_unit_test(the_file_that_was_read_longest_ago_makes_room),
	};
	char path[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (unsigned i = 0; i < 40; i++) {
		path_of(path, i);
		unlink(path);
	}
	rmdir(folder);
	return failed;
}
