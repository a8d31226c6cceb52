/* SPDX-License-Identifier: MIT */
/* The suppression that is found for a text is the one that a plain search through every line in turn finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/report/suppress.h"

static unsigned dice;

static unsigned roll(unsigned sides)
{
	dice = dice * 1103515245 + 12345;
	return (dice >> 16) % sides;
}

static void make(char *text, unsigned most, const char *letters)
{
	unsigned size = roll(most);

	for (unsigned i = 0; i < size; i++)
		text[i] = letters[roll((unsigned)strlen(letters))];
	text[size] = 0;
}

/* The rule of the documentation and of LeakSanitizer: * is any text, ^ and $ are the ends, otherwise any part may match. */
static bool plainly(const char *pattern, const char *text)
{
	if (!*pattern)
		return true;
	if (*pattern == '*')
		return plainly(pattern + 1, text) || (*text && plainly(pattern, text + 1));
	if (*pattern == '$' && !pattern[1])
		return !*text;
	return *text == *pattern && plainly(pattern + 1, text + 1);
}

static bool found(const char *pattern, const char *text)
{
	if (*pattern == '^')
		return plainly(pattern + 1, text);
	for (;; text++)
		if (plainly(pattern, text))
			return true;
		else if (!*text)
			return false;
}

static void read_list(struct sl_suppressions *list, char (*lines)[40], unsigned count)
{
	char path[] = "/tmp/stormlog-supp-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");
	unsigned line;

	for (unsigned i = 0; i < count; i++)
		fprintf(file, "leak:%s\n", lines[i]);
	fclose(file);
	assert_true(sl_suppressions_read(list, path, &line));
	unlink(path);
	assert_int_equal(list->count, count);
}

static void the_first_line_that_matches_is_found(void **state)
{
	static char lines[60][40], text[60];
	bool used[60];
	unsigned matched = 0;

	dice = 1;
	for (unsigned round = 0; round < 90; round++) {
		struct sl_suppressions list = {0};
		unsigned count = 1 + roll(60);

		for (unsigned i = 0; i < count; i++)
			do
				make(lines[i], round % 2 ? 12 : 7, round % 3 ? "abcdefgh^$**" : "ab*$^");
			while (!*lines[i]);
		read_list(&list, lines, count);
		for (unsigned i = 0; i < 100; i++) {
			const char *got, *wanted = NULL;

			make(text, i % 10 ? 40 : 5, round % 3 ? "abcdefgh^$" : "ab");
			for (unsigned k = 0; k < count && !wanted; k++)
				wanted = found(lines[k], text) ? lines[k] : NULL;
			got = sl_suppressions_match(&list, text);
			matched += got != NULL;
			memset(used, 0, sizeof(used));
			sl_suppressions_mark(&list, text, used);
			for (unsigned k = 0; k < count; k++)
				assert_int_equal(used[k], found(lines[k], text));
			assert_true(!got == !wanted);
			if (got)
				assert_string_equal(got, wanted);
		}
		sl_suppressions_free(&list);
	}
	assert_in_range(matched, 300, 8700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_line_that_matches_is_found)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
