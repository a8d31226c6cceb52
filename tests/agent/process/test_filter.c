/* SPDX-License-Identifier: MIT */
#include "tests/agent/test.h"

#include "agent/process/process.h"

static void the_whole_path_or_its_last_part_matches(void **state)
{
	assert_true(sl_filter_matches("python*", "/usr/bin/python3"));
	assert_true(sl_filter_matches("*/train.py", "a/train.py"));
	assert_true(sl_filter_matches("train.py", "a/train.py"));
	assert_true(sl_filter_matches("[!a-c]x", "dx"));
	assert_false(sl_filter_matches("python", "/usr/bin/python3"));
	assert_false(sl_filter_matches("a/*", "/b/a/train.py"));
}

static void regular_expressions_are_told(void **state)
{
	static const char *const regexes[] = {"python.*", "^python", "python$", "a|b"};

	for (size_t i = 0; i < sizeof(regexes) / sizeof(regexes[0]); i++)
		assert_true(sl_filter_is_regex(regexes[i]));
	assert_false(sl_filter_is_regex("*/train.py"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_path_or_its_last_part_matches),
		cmocka_unit_test(regular_expressions_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
