/* SPDX-License-Identifier: MIT */
#include "tests/agent/test.h"

#include <regex.h>
#include <string.h>
#include <time.h>

#include "agent/process/filter.h"

static void what_it_matches_is_what_the_c_library_matches(void **state)
{
	static const char *const regexes[] = {"python",	    "^python$", "python3?$", "a*b",	   "a+b",
					      "(ab)+c",	    "(a|b)*c",	"x(yz)?w",   "[a-c]+[^d]", "^(train|eval)\\.py$",
					      ".",	    "^$",	"a.c",	     "[]x]",	   "(a*)*b",
					      "((a|b)c)*d", "/bin/",	"p|q|^r"};
	static const char *const texts[] = {
		"",	    "python",	"/usr/bin/python3", "aaab", "ab",  "b", "ababc", "abac", "c",	    "xw", "xyzw", "xyz",
		"train.py", "trainxpy", "eval.py",	    "a.c",  "abd", "]", "acbcd", "d",	 "/bin/sh", "r",  "xr",	  "q"};

	for (size_t i = 0; i < sizeof(regexes) / sizeof(regexes[0]); i++) {
		regex_t regex;

		assert_int_equal(regcomp(&regex, regexes[i], REG_EXTENDED | REG_NOSUB), 0);
		for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++)
			if (sl_filter_matches(regexes[i], texts[j]) != !regexec(&regex, texts[j], 0, NULL, 0))
				fail_msg("%s against \"%s\"", regexes[i], texts[j]);
		regfree(&regex);
	}
}

static void broken_expressions_match_nothing(void **state)
{
	static const char *const regexes[] = {"(a", "a)", "[a", "a\\", "*a", "a**", "(a|[b)"};

	for (size_t i = 0; i < sizeof(regexes) / sizeof(regexes[0]); i++) {
		assert_false(sl_filter_regex_valid(regexes[i]));
		assert_false(sl_filter_matches(regexes[i], "a"));
	}
}

static void an_expression_made_to_explode_gives_up(void **state)
{
	clock_t begin = clock();

	sl_filter_matches("(a*)*(a*)*(a*)*(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	assert_true(clock() - begin < CLOCKS_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_matches_is_what_the_c_library_matches),
		cmocka_unit_test(broken_expressions_match_nothing),
		cmocka_unit_test(an_expression_made_to_explode_gives_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
