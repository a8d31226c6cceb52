/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "common/text.h"

static void test_sizes_are_binary_with_or_without_iB(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"0", 0},
		{"512", 512},
		{"4G", 4ull << 30},
		{"4GiB", 4ull << 30},
		{"4GB", 4ull << 30},
		{"1.5GiB", 3ull << 29},
		{"512 MiB", 512ull << 20},
		{"2t", 2ull << 40},
		{"100b", 100},
		{"0.5K", 512},
	};
	uint64_t bytes;

	for (unsigned i = 0; i < SL_COUNT(cases); i++) {
		assert_true(sl_size_parse(cases[i].text, &bytes));
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void test_what_is_no_size_is_refused(void **state)
{
	static const char *const cases[] = {
		"",    "G",   "-1",   "4X",	 "4GG", "4 G iB x", "1.", ".5", "99999999999999999999", "20000000000T",
		"1e3", "0.5", "1.5B", "0.0001K",
	};
	uint64_t bytes;

	for (unsigned i = 0; i < SL_COUNT(cases); i++)
		assert_false(sl_size_parse(cases[i], &bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_are_binary_with_or_without_iB),
		cmocka_unit_test(test_what_is_no_size_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
