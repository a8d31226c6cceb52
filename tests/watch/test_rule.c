/* SPDX-License-Identifier: MIT */
/* Rules of watch at their limits: texts that are no rules; values that are equal, unknown or negative. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "analyzer/base/format.h"
#include "analyzer/watch/watch.h"
#include "common/base.h"

static bool is_rule(const char *text)
{
	struct sl_rule rule;
	const char *wrong = sl_rule_parse(&rule, text);

	sl_rule_free(&rule);
	return !wrong;
}

static void a_rule_has_a_value_that_is_a_number_with_its_unit(void **state)
{
	static const char *const good[] = {"used > 0",		 "used >= 100%",       "used > 0%",   "free < 1KiB",
					   "live > 16777215TiB", "growth > 0MiB/step", "full-in < 0", "unlike > 3.5"};
	static const char *const bad[] = {"used > 95",	       "used > 101%",	    "used > nan",    "used > nan%",
					  "used > inf%",       "used > -1%",	    "live > -1MiB",  "live > 16777216TiB",
					  "growth > nanMiB/s", "growth > 1MiB/age", "full-in < nan", "full-in < infs",
					  "full-in < -1s",     "ooms > nan",	    "ooms > -1",     "used > 95% for nans",
					  "used x > 95%",      "used > 0.5B"};

	for (unsigned i = 0; i < SL_COUNT(good); i++)
		if (!is_rule(good[i]))
			fail_msg("%s is a rule", good[i]);
	for (unsigned i = 0; i < SL_COUNT(bad); i++)
		if (is_rule(bad[i]))
			fail_msg("%s is no rule", bad[i]);
}

/* Checks which of the values, one second apart, raise or clear the alert of a rule. */
static void expect_turns(const char *text, const double *values, const enum sl_turn *turns, unsigned count)
{
	struct sl_alarm alarm = {0};
	struct sl_rule rule;

	assert_null(sl_rule_parse(&rule, text));
	for (unsigned i = 0; i < count; i++)
		if (sl_alarm_look(&alarm, &rule, values[i], (i + 1) * 1000000000ull) != turns[i])
			fail_msg("%s: turn %u", text, i);
	sl_rule_free(&rule);
}

static void a_value_that_is_equal_is_neither_above_nor_below(void **state)
{
	static const double values[] = {2, 3};

	expect_turns("unlike > 2", values, (enum sl_turn[]){SL_TURN_NONE, SL_TURN_RAISED}, 2);
	expect_turns("unlike >= 2", values, (enum sl_turn[]){SL_TURN_RAISED, SL_TURN_NONE}, 2);
	expect_turns("unlike < 2", values, (enum sl_turn[]){SL_TURN_NONE, SL_TURN_NONE}, 2);
	expect_turns("unlike <= 2", values, (enum sl_turn[]){SL_TURN_RAISED, SL_TURN_CLEARED}, 2);
}

static void a_look_without_a_value_breaks_the_time_for_which_a_rule_holds(void **state)
{
	static const double values[] = {3, NAN, 3, 3, 3};

	expect_turns("unlike > 2 for 2s", values,
		     (enum sl_turn[]){SL_TURN_NONE, SL_TURN_NONE, SL_TURN_NONE, SL_TURN_NONE, SL_TURN_RAISED}, 5);
}

static void an_alarm_is_lost_or_cleared_by_what_lasted_as_long_as_the_rule_says(void **state)
{
	static const double lost[] = {3, 3, 3, 1, 1, NAN, NAN, NAN}, cleared[] = {3, 3, 3, NAN, NAN, 1, 1, 1};

	expect_turns("unlike > 2 for 2s", lost, (enum sl_turn[]){0, 0, SL_TURN_RAISED, 0, 0, 0, 0, SL_TURN_LOST}, 8);
	expect_turns("unlike > 2 for 2s", cleared, (enum sl_turn[]){0, 0, SL_TURN_RAISED, 0, 0, 0, 0, SL_TURN_CLEARED}, 8);
}

static void what_shrinks_is_not_said_to_stand_still(void **state)
{
	char text[SL_FORMAT_BYTES + 8];

	assert_string_equal(sl_unit_format(SL_UNIT_RATE, -2097152, text), "-2.00 MiB/s");
	assert_string_equal(sl_unit_format(SL_UNIT_STEP, 2097152, text), "2.00 MiB/step");
	assert_string_equal(sl_unit_format(SL_UNIT_SECONDS, INFINITY, text), "not foreseen");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_has_a_value_that_is_a_number_with_its_unit),
		cmocka_unit_test(a_value_that_is_equal_is_neither_above_nor_below),
		cmocka_unit_test(a_look_without_a_value_breaks_the_time_for_which_a_rule_holds),
		cmocka_unit_test(an_alarm_is_lost_or_cleared_by_what_lasted_as_long_as_the_rule_says),
		cmocka_unit_test(what_shrinks_is_not_said_to_stand_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
