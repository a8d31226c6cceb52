/* SPDX-License-Identifier: MIT */
#include "attach/exports.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void count(void *data, const char *name, const Elf64_Sym *symbol)
{
	(void)name;
	(void)symbol;
	++*(unsigned *)data;
}

/* A copy of this program, which exports names (-rdynamic). */
static void copy_self(const char *path)
{
	char bytes[4096];
	FILE *from = fopen("/proc/self/exe", "rb"), *to = fopen(path, "wb");
	size_t got;

	assert_true(from && to);
	while ((got = fread(bytes, 1, sizeof(bytes), from)))
		assert_int_equal(fwrite(bytes, 1, got, to), got);
	fclose(from);
	fclose(to);
}

static void test_a_file_that_is_cut_while_it_is_open_reads_as_zeros_from_there(void **state)
{
	char path[] = "/tmp/stormlog-exports-XXXXXX";
	struct sl_exports file;
	unsigned before = 0, after = 0;

	(void)state;
	close(mkstemp(path));
	copy_self(path);
	assert_true(sl_exports_open(&file, path));
	sl_exports_each(&file, count, &before);
	assert_true(before);
	assert_int_equal(truncate(path, 64), 0);
	sl_exports_each(&file, count, &after);
	assert_int_equal(after, 0);
	assert_int_equal(file.bytes[file.size - 1], 0);
	sl_exports_close(&file);
	unlink(path);
}

static void test_what_is_no_file_is_not_waited_for(void **state)
{
	char folder[] = "/tmp/stormlog-exports-XXXXXX", path[64];
	struct sl_exports file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(sl_exports_open(&file, path));
	assert_false(sl_exports_open(&file, "/dev/zero"));
	assert_int_equal(errno, ENOEXEC);
	assert_false(sl_exports_open(&file, "/proc/self/none"));
	assert_int_equal(errno, ENOENT);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_is_cut_while_it_is_open_reads_as_zeros_from_there),
		cmocka_unit_test(test_what_is_no_file_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
