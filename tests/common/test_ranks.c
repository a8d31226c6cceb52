/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/text.h"

static void a_list_has_its_ranks(void **state)
{
	assert_true(sl_ranks_has("0,2,4-7", 0, NULL));
	assert_false(sl_ranks_has("0,2,4-7", 1, NULL));
	assert_true(sl_ranks_has("0,2,4-7", 5, NULL));
	assert_true(sl_ranks_has("0,2,4-7", 7, NULL));
	assert_false(sl_ranks_has("0,2,4-7", 8, NULL));
}

static void it_says_until_where(void **state)
{
	uint64_t until;

	assert_true(sl_ranks_has("4-7,0", 0, &until));
	assert_int_equal(until, 1);
	assert_false(sl_ranks_has("4-7,0", 1, &until));
	assert_int_equal(until, 4);
	assert_true(sl_ranks_has("4-7,0", 5, &until));
	assert_int_equal(until, 8);
	assert_false(sl_ranks_has("4-7,0", 8, &until));
	assert_true(until == UINT64_MAX);
}

static void a_list_is_well_formed_or_not(void **state)
{
	assert_true(sl_ranks_valid("0,2,4-7"));
	assert_false(sl_ranks_valid("0,"));
	assert_false(sl_ranks_valid("7-4"));
	assert_false(sl_ranks_valid("a"));
	assert_false(sl_ranks_valid("1 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_has_its_ranks),
		cmocka_unit_test(it_says_until_where),
		cmocka_unit_test(a_list_is_well_formed_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
