/* SPDX-License-Identifier: MIT */
/* A trace names any file; only a source of the recorded program is read (analyzer/source/source.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/sandbox.h"
#include "analyzer/source/source.h"

#define TEXT "keep.append(x)"

static char folder[] = "/tmp/stormlog-source-XXXXXX", work[64], host[HOST_NAME_MAX + 1];
static struct sl_frames file;
static struct sl_trace trace;

static const char *at(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", work, name);
	return path;
}

/* The second line is TEXT. */
static void make(const char *path)
{
	FILE *to = fopen(path, "w");

	assert_non_null(to);
	fputs("x = 1\n\t" TEXT "  \n\n" TEXT, to);
	fclose(to);
}

static int set_up(void **state)
{
	struct timespec now;

	if (!mkdtemp(folder))
		return 1;
	snprintf(work, sizeof(work), "%s/work", folder);
	mkdir(work, 0700);
	mkdir(at("part"), 0700);
	make(at("train.py"));
	make(at("part/loop.py"));
	make(at("notes.txt"));
	gethostname(host, sizeof(host) - 1);
	clock_gettime(CLOCK_REALTIME, &now);
	file = (struct sl_frames){.path = "rank-00000-1.msgpack.zst", .owner = geteuid()};
	trace = (struct sl_trace){.files = &file, .file_count = 1};
	trace.header.host = host;
	trace.header.cwd = work;
	trace.header.started_ns = (uint64_t)(now.tv_sec + 1) * SL_NS_PER_S;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
	return remove(path);
}

static int tear_down(void **state)
{
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* What is said of a line of that file, which a new handle reads. */
static enum sl_source_why ask(const char *path, uint32_t line)
{
	struct sl_stack_frame frame = {.python = true, .file = path, .line = line};
	struct sl_source *source = sl_source_new();
	enum sl_source_why why;
	const char *text = sl_source_line(source, &trace, &frame, &why);

	assert_int_equal(text == NULL, why != SL_SOURCE_FOUND);
	if (text)
		assert_string_equal(text, TEXT);
	assert_int_equal(*sl_source_says(why) == 0, why == SL_SOURCE_FOUND);
	sl_source_free(source);
	return why;
}

static void a_line_of_the_program_is_read(void **state)
{
	struct sl_stack_frame frame = {.file = "train.py", .line = 2};
	enum sl_source_why why;

	assert_int_equal(ask("train.py", 2), SL_SOURCE_FOUND);
	assert_int_equal(ask(at("train.py"), 4), SL_SOURCE_FOUND);
	assert_int_equal(ask("part/../part/./loop.py", 2), SL_SOURCE_FOUND);
	assert_int_equal(ask("train.py", 3), SL_SOURCE_SHORT);
	assert_int_equal(ask("train.py", 5), SL_SOURCE_SHORT);
	assert_int_equal(ask("train.py", UINT32_MAX), SL_SOURCE_SHORT);
	assert_int_equal(ask("train.py", 0), SL_SOURCE_NO_LINE);
	assert_int_equal(ask(NULL, 2), SL_SOURCE_NO_LINE);
	assert_null(sl_source_line(NULL, &trace, &frame, &why));
	assert_int_equal(why, SL_SOURCE_OFF);
}

static void no_file_outside_the_folder(void **state)
{
	char above[128];

	snprintf(above, sizeof(above), "%s/above.py", folder);
	make(above);
	assert_int_equal(ask(above, 2), SL_SOURCE_OUTSIDE);
	assert_int_equal(ask("../above.py", 2), SL_SOURCE_OUTSIDE);
	assert_int_equal(ask("part/../../above.py", 2), SL_SOURCE_OUTSIDE);
	assert_int_equal(ask("../../../../../../../../x.py", 2), SL_SOURCE_OUTSIDE);
	snprintf(above, sizeof(above), "%s/workshop.py", folder); /* begins as the folder's name does */
	make(above);
	assert_int_equal(ask(above, 2), SL_SOURCE_OUTSIDE);
	assert_int_equal(ask("notes.txt", 2), SL_SOURCE_NO_LINE);
	assert_int_equal(ask("/etc/shadow", 1), SL_SOURCE_NO_LINE);
	trace.header.cwd = "/";
	assert_int_equal(ask(above, 2), SL_SOURCE_OUTSIDE);
	trace.header.cwd = NULL;
	assert_int_equal(ask("train.py", 2), SL_SOURCE_OUTSIDE);
	trace.header.cwd = work;
}

static void no_link_is_followed(void **state)
{
	char linked[128];

	assert_return_code(symlink("/etc/passwd", at("link.py")), 0);
	assert_return_code(symlink("part", at("door")), 0);
	assert_int_equal(ask("link.py", 1), SL_SOURCE_MISSING);
	assert_int_equal(ask("door/loop.py", 2), SL_SOURCE_MISSING);
	snprintf(linked, sizeof(linked), "%s/linked", folder);
	assert_return_code(symlink(work, linked), 0);
	trace.header.cwd = linked;
	assert_int_equal(ask("train.py", 2), SL_SOURCE_MISSING);
	trace.header.cwd = work;
}

static void nothing_waits_or_acts(void **state)
{
	assert_return_code(mkfifo(at("pipe.py"), 0600), 0);
	assert_return_code(mkdir(at("folder.py"), 0700), 0);
	assert_int_equal(ask("pipe.py", 1), SL_SOURCE_MISSING);
	assert_int_equal(ask("folder.py", 1), SL_SOURCE_MISSING);
	assert_int_equal(ask("none.py", 1), SL_SOURCE_MISSING);
}

static void no_way_leads_through_proc(void **state)
{
	char self[128];
	int here = open(".", O_PATH | O_DIRECTORY);

	assert_return_code(chdir(work), 0);
	trace.header.cwd = "/proc/self/cwd";
	assert_int_equal(ask("train.py", 2), SL_SOURCE_MISSING);
	snprintf(self, sizeof(self), "/proc/%d/root%s", getpid(), work);
	trace.header.cwd = self;
	assert_int_equal(ask("train.py", 2), SL_SOURCE_MISSING);
	trace.header.cwd = "/proc";
	assert_int_equal(ask("self/environ", 1), SL_SOURCE_NO_LINE);
	trace.header.cwd = work;
	assert_return_code(fchdir(here), 0);
	close(here);
}

static void no_file_of_another_owner(void **state)
{
	uid_t other = geteuid() + 1;

	file.owner = other; /* a stranger's trace names the reader's file */
	assert_int_equal(ask("train.py", 2), SL_SOURCE_STRANGER);
	file.owner = 0; /* root recorded */
	assert_int_equal(ask("train.py", 2), SL_SOURCE_FOUND);
	file.owner = geteuid();
	if (geteuid())
		return;
	make(at("foreign.py"));
	assert_return_code(chown(at("foreign.py"), other, other), 0);
	assert_int_equal(ask("foreign.py", 2), SL_SOURCE_STRANGER);
	file.owner = other;
	assert_int_equal(ask("foreign.py", 2), SL_SOURCE_FOUND);
	file.owner = geteuid();
}

static void no_file_that_changed_since(void **state)
{
	uint64_t started = trace.header.started_ns;

	trace.header.started_ns = started - 3600 * SL_NS_PER_S;
	assert_int_equal(ask("train.py", 2), SL_SOURCE_CHANGED);
	trace.header.started_ns = 0;
	assert_int_equal(ask("train.py", 2), SL_SOURCE_CHANGED);
	trace.header.started_ns = started;
}

static void no_file_of_another_machine(void **state)
{
	trace.header.host = "elsewhere";
	assert_int_equal(ask("train.py", 2), SL_SOURCE_ELSEWHERE);
	trace.header.host = NULL;
	assert_int_equal(ask("train.py", 2), SL_SOURCE_ELSEWHERE);
	trace.header.host = host;
	trace.file_count = 0;
	assert_int_equal(ask("train.py", 2), SL_SOURCE_ELSEWHERE);
	trace.file_count = 1;
}

static void a_large_file_or_line_costs_little(void **state)
{
	struct sl_stack_frame frame = {.file = "long.py", .line = 1};
	struct sl_source *source = sl_source_new();
	FILE *to = fopen(at("long.py"), "w");

	for (int i = 0; i < 100000; i++)
		fputs("\xc3\xa4", to);
	fclose(to);
	assert_int_equal(strlen(sl_source_line(source, &trace, &frame, NULL)), SL_SOURCE_LINE);
	frame.file = "odd.py";
	to = fopen(at("odd.py"), "w");
	fputs("x", to);
	for (int i = 0; i < 200; i++)
		fputs("\xc3\xa4", to);
	fclose(to);
	assert_int_equal(strlen(sl_source_line(source, &trace, &frame, NULL)), SL_SOURCE_LINE - 1);
	sl_source_free(source);
	make(at("large.py"));
	assert_return_code(truncate(at("large.py"), SL_SOURCE_FILE + 1), 0);
	assert_int_equal(ask("large.py", 2), SL_SOURCE_LARGE);
	assert_return_code(truncate(at("large.py"), 1ll << 40), 0);
	assert_int_equal(ask("large.py", 2), SL_SOURCE_LARGE);
}

/* Last: it is for good. */
static void it_works_inside(void **state)
{
	const char *const writes[] = {at("analysis"), NULL};

	sl_sandbox(NULL, writes, 0);
	assert_int_equal(ask("train.py", 2), SL_SOURCE_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_of_the_program_is_read),
		cmocka_unit_test(no_file_outside_the_folder),
		cmocka_unit_test(no_link_is_followed),
		cmocka_unit_test(nothing_waits_or_acts),
		cmocka_unit_test(no_way_leads_through_proc),
		cmocka_unit_test(no_file_of_another_owner),
		cmocka_unit_test(no_file_that_changed_since),
		cmocka_unit_test(no_file_of_another_machine),
		cmocka_unit_test(a_large_file_or_line_costs_little),
		cmocka_unit_test(it_works_inside),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
