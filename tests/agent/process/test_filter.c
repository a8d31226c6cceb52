/* SPDX-License-Identifier: MIT */
#include "tests/agent/test.h"

#include <fnmatch.h>

#include "agent/process/process.h"

static void what_it_matches_is_what_the_c_library_matches(void **state)
{
	static const char *const globs[] = {"python",  "python*",  "*python?",	 "a*b", "*a*b*c", "[a-c]x",
					    "[!a-c]x", "train.py", "*/train.py", "",	"*",	  "a[]x]c",
					    "[!]]",    "[a",	   "**d",	 "?"};
	static const char *const texts[] = {"",	  "python", "python3",	"/usr/bin/python3", "ab",  "aab", "xaybzc",
					    "ax", "dx",	    "train.py", "a/train.py",	    "axc", "a]c", "]",
					    "[a", "d",	    "aaaaaad"};

	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++)
		for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++) {
			const char *slash = strrchr(texts[j], '/');
			bool wanted = !fnmatch(globs[i], texts[j], FNM_NOESCAPE) ||
				      (slash && !fnmatch(globs[i], slash + 1, FNM_NOESCAPE));

			if (sl_filter_matches(globs[i], texts[j]) != wanted)
				fail_msg("%s against \"%s\"", globs[i], texts[j]);
		}
}

static void regular_expressions_are_told(void **state)
{
	static const char *const regexes[] = {"python.*", "^python", "python$", "a|b"};

	for (size_t i = 0; i < sizeof(regexes) / sizeof(regexes[0]); i++)
		assert_true(sl_filter_is_regex(regexes[i]));
	assert_false(sl_filter_is_regex("*/train.py"));
}

static void many_stars_end_soon(void **state)
{
	assert_false(
		sl_filter_matches("*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_matches_is_what_the_c_library_matches),
		cmocka_unit_test(regular_expressions_are_told),
		cmocka_unit_test(many_stars_end_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
