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

#include "analyzer/base/door.h"

enum { THREADS = 4, LINES = 2000 };

static void *print_lines(void *out)
{
	for (int i = 0; i < LINES; i++)
		sl_door_print(out, "stormlog-server: run %d (pack %s) was let go\n", 7, "cafe");
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lines_of_threads_are_whole)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
