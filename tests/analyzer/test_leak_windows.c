/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "analyzer/analyses/leak_windows.h"

/* Each window adds 0 to 2 at random, so the true rate is 1 a window: it must lie within twice the error nearly always. */
static void the_error_of_a_rate_holds_the_rate(void **state)
{
	struct sl_leak_windows series = {.count = SL_TRACK_WINDOWS};
	unsigned held = 0, tries = 500;
	double error;

	srand48(16);
	for (unsigned i = 0; i < tries; i++) {
		double kept = 0;

		for (unsigned k = 0; k < series.count; k++) {
			series.time[k] = k;
			series.retained[k] = kept += 2 * drand48();
		}
		held += fabs(sl_leak_windows_slope(&series, series.time, &error) - 1) <= 2 * error;
	}
	assert_true(held >= tries * 9 / 10);
}

/* A queue gets three of five turns' blocks, and two leave it: chance makes its growth slow down by three errors about never. */
static void a_queue_that_grows_evenly_hardly_ever_slows_down(void **state)
{
	struct sl_leak_windows series = {.count = SL_TRACK_WINDOWS};
	unsigned slower = 0, tries = 2000;

	srand48(16);
	for (unsigned i = 0; i <= series.count; i++)
		series.others[i] = series.tick[i] = i;
	for (unsigned i = 0; i < tries; i++) {
		uint64_t deaths = 0;
		double held = 0;

		for (unsigned k = 0; k < series.count; k++) {
			for (unsigned turn = 0; turn < 32; turn++) {
				bool dies = drand48() < 0.4;

				deaths += dies;
				held += dies ? -1 : 1;
			}
			series.retained[k] = held;
		}
		slower += sl_leak_windows_decline(&series, deaths) > 3;
	}
	assert_true(slower <= tries / 100);
}

static void births_between_which_little_else_happened_came_in_one_call(void **state)
{
	struct sl_leak_windows series = {.count = SL_TRACK_WINDOWS};

	for (unsigned i = 0; i < series.count; i++) {
		series.time[i] = i;
		series.others[i] = i / 8 * 1000 + i % 8;
	}
	assert_int_equal(sl_leak_windows_calls(&series, series.time), SL_TRACK_WINDOWS);
	assert_int_equal(sl_leak_windows_calls(&series, series.others), 4);
}

/* Four epochs, each of 100 000 births elsewhere and then eight windows with four between any two. */
static void work_after_a_long_quiet_time_is_more_than_one_call(void **state)
{
	struct sl_leak_windows series = {.count = SL_TRACK_WINDOWS};

	for (unsigned i = 0; i < series.count; i++)
		series.others[i] = i / 8 * 100000 + i % 8 * 4;
	assert_int_equal(sl_leak_windows_calls(&series, series.others), 4 * 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(births_between_which_little_else_happened_came_in_one_call),
					   cmocka_unit_test(work_after_a_long_quiet_time_is_more_than_one_call),
					   cmocka_unit_test(a_queue_that_grows_evenly_hardly_ever_slows_down),
					   cmocka_unit_test(the_error_of_a_rate_holds_the_rate)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
