/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/base/escape.h"

enum { THREADS = 4, LINES = 2000 };

static void *print_lines(void *out)
{
	for (int i = 0; i < LINES; i++)
		sl_escape_print(out, "stormlog-server: run %d (pack %s) was let go\n", 7, "cafe");
	return NULL;
}

/* The stream is unbuffered as stderr is, so each part of a line could be a write of its own. */
static void lines_of_threads_are_whole(void **state)
{
	static const char wanted[] = "stormlog-server: run 7 (pack cafe) was let go\n";
	FILE *out = tmpfile();
	pthread_t threads[THREADS];
	char line[256];
	int count = 0;

	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, print_lines, out), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (rewind(out); fgets(line, sizeof(line), out); count++)
		assert_string_equal(line, wanted);
	assert_int_equal(count, THREADS * LINES);
	fclose(out);
}

static void put(char *made, size_t size, enum sl_door door, const char *text)
{
	FILE *out = fmemopen(made, size, "w");

	assert_non_null(out);
	sl_escape_put(out, door, text);
	fclose(out);
}

/* Where ';' separates cells, quotes within a cell are letters, and what follows a ';' begins a cell. */
static void no_cell_begins_a_formula_whatever_separates_cells(void **state)
{
	static const char *const cells[][2] = {
		{"=1", "'=1"},
		{"\uff1dcmd", "'\uff1dcmd"},
		{"\uff0b1", "'\uff0b1"},
		{"\uff0d1", "'\uff0d1"},
		{"\uff20SUM", "'\uff20SUM"},
		{"\uff1e1", "\uff1e1"},
		{"a;b", "\"a;b\""},
		{"a;=cmd|'/C calc'!A0", "\"a;'=cmd|'/C calc'!A0\""},
		{"a; =1", "\"a;' =1\""},
		{"a;\"=1\"", "\"a;'\"\"=1\"\"\""},
		{"a;;@b;\uff0d1", "\"a;;'@b;'\uff0d1\""},
		{";-1", "\";'-1\""},
	};
	char made[100];

	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
		put(made, sizeof(made), SL_ESCAPE_CSV, cells[i][0]);
		assert_string_equal(made, cells[i][1]);
	}
}

static void markdown_has_no_mathematics(void **state)
{
	char made[100];

	put(made, sizeof(made), SL_ESCAPE_MARKDOWN, "$\\color{red}{x}$ $$y$$");
	assert_string_equal(made, "\\$\\\\color{red}{x}\\$ \\$\\$y\\$\\$");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lines_of_threads_are_whole),
					   cmocka_unit_test(no_cell_begins_a_formula_whatever_separates_cells),
					   cmocka_unit_test(markdown_has_no_mathematics)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
